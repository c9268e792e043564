"""D-NTM: a controller with trained addresses and contents of the stream's own."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.trained import TrainedContender


class DNTM(TrainedContender):
    """Nothing is left to choose once it is trained, so every trial is a training."""

    name = "dntm"
    make_with = {"cells": "cells"}
    fit_with = {"rate": "lr"}
    grid = {
        "rate": [1e-3, 2e-3, 4e-3, 8e-3],
        "cells": [64, 128, 256],
    }
    start = {"rate": 2e-3, "cells": 128}


CONTENDER = DNTM
