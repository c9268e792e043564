"""The labeled memory network as an online method: its parts, its states, and what it can say."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from labelmem.combiner import Combiner
from labelmem.config import MemoryConfig
from labelmem.copies import Copied
from labelmem.engines.base import Engine
from labelmem.engines.select import AUTO, checked_name, reasons, select
from labelmem.errors import ConfigError, ModelError, UnsupportedError
from labelmem.explain import Explanation, loudest_cells
from labelmem.kernel import Kernel
from labelmem.keys import Key
from labelmem.lmn import ways
from labelmem.lmn.equations import Equations
from labelmem.lmn.state import LMNState, LMNStep, Recurrent
from labelmem.lockstep.state import Held, can_record, hooks_of
from labelmem.logit_memory import LogitMemory, LogitMemoryOptions, LogitState, LogitStep
from labelmem.memory import LabeledMemory
from labelmem.online import OnlineMethod, Step
from labelmem.showing import Facts, Shown
from labelmem.trees import chosen

__all__ = ["LMN"]


class LMN(Shown, Copied, Equations, OnlineMethod[Any]):  # type: ignore[override]  # own device
    """A memory beside a model, as an online method; :class:`labelmem.Adapter` is its public form.

    With a combiner it takes the paper's steps, Eq. 1 to 5 and the write. Without one it takes those
    of the library's default form, :mod:`labelmem.logit_memory`.

    Parameters are those of the adapter.
    """

    _own = ("_engines",)

    def __init__(
        self,
        model: nn.Module,
        head: str | nn.Module | None = None,
        labels: Iterable[Hashable] | None = None,
        memory: MemoryConfig | None = None,
        combiner: float | Combiner | None = None,
        key: Key | Callable[[Any, Tensor], Tensor] | None = None,
        partition: bool = False,
        engine: str = AUTO,
    ) -> None:
        self.engine = engine
        self.wear(model, head, labels)
        self.memory = memory or MemoryConfig()
        self.key, self.partition = key, partition
        try:
            self.combiner = combiner
        except Exception:
            self.close()  # the model goes back as it came
            raise

    @property
    def engine(self) -> str:
        """The name of the engine that takes all steps, or ``auto``: the fastest that fits."""
        return self._only

    @engine.setter
    def engine(self, name: str) -> None:
        self._only = checked_name(name)
        self._make_own()

    def _make_own(self) -> None:
        self._engines: dict[int, Engine] = {}  # what they know of a model does not hold for another

    def engines(self, streams: int = 1) -> dict[str, str | None]:
        """Why each engine cannot take the steps of so many streams; None where it can.

        The first that can, in this order, takes them unless ``engine`` says otherwise.

        Examples
        --------
        >>> from labelmem import Adapter
        >>> adapter = Adapter(torch.nn.Linear(2, 2).double(), combiner=0.5)
        >>> adapter.engines()["reference"] is None      # the reference takes everything
        True
        """
        return reasons(self, streams)

    def engine_of(self, streams: int) -> str:
        """The name of the engine that takes the steps of so many streams."""
        return self._engine(streams).name

    def _engine(self, streams: int) -> Engine:
        """The engine for so many streams: chosen once, and again when the adapter changed."""
        kind = min(streams, 2)  # one stream, or several
        engine = self._engines.get(kind)
        if engine is None or not engine.current():
            engine = self._engines[kind] = select(self, streams, self._only)
        return engine

    @property
    def combiner(self) -> Any:
        """A fixed weight of the memory, a network that decides it, or None: the default form."""
        return self._combiner

    @combiner.setter
    def combiner(self, combiner: float | Combiner | None) -> None:
        self.online = None
        if combiner is None and self.backbone.head is not None:
            self.online = LogitMemory(len(self.known), self._options())
        elif combiner is None:
            combiner = 0.5  # without a model's score there is nothing to combine
        elif isinstance(combiner, Combiner):
            if self.dim is None:
                raise ConfigError(
                    "with labels=() there is no model score to combine with; leave combiner out"
                )
            parts = len(self.blocks()) or 1
            combiner.build(self.dim, self.device, self.dtype, parts).eval()
        elif not isinstance(combiner, int | float) or not 0 <= combiner <= 1:
            raise ConfigError(
                f"combiner is {combiner!r}; it must be a Combiner, a fixed theta in [0, 1], or None"
            )
        self._combiner = combiner
        self._form = "online" if self.online else "fixed"
        if isinstance(combiner, Combiner):
            self._form = combiner.form()

    def _options(self) -> LogitMemoryOptions:
        """The default form has constants of its own; of the memory's options it takes one."""
        capacity = self.memory.capacity
        if self.memory != MemoryConfig(capacity=capacity) or self.partition:
            raise ConfigError(
                "without a combiner a memory takes a capacity alone; its other options, and "
                "partition, belong to the paper's forms: give combiner=0.5 (LMN-fixed) or a "
                "Combiner with them"
            )
        return LogitMemoryOptions() if capacity is None else LogitMemoryOptions(capacity=capacity)

    @property
    def name(self) -> str:  # type: ignore[override]
        """``lmn-online`` without a combiner, ``lmn-fixed`` with a number, else ``lmn``."""
        if self.online is not None:
            return "lmn-online"
        return "lmn" if isinstance(self.combiner, Combiner) else "lmn-fixed"

    def _facts(self) -> Facts:
        facts: dict[str, int | str] = {"model": type(self.backbone.model).__name__}
        if self.dim is not None:
            facts |= {"labels": len(self.known), "hidden vector": f"d={self.dim}"}
        facts["form"] = self._form_in_words()
        if self.online is not None and self.online.primed is not None:
            facts["start"] = "primed"
        return facts | ({"state": "closed"} if self.backbone.closed else {})

    def facts(self, state: Any) -> Facts:
        """Cells, and the form of the step."""
        facts: dict[str, int | str] = {"cells": state.cells}
        if state.form != self._form:
            return facts | {"form": "a form that its adapter had before"}
        try:
            engine = self.engine_of(state.streams)
        except UnsupportedError:  # said when it is asked for a step
            engine = self.engine
        return facts | {"form": self._form_in_words(), "engine": f"{engine} engine"}

    def _form_in_words(self) -> str:
        if self.online is not None:
            return "default form"
        if self.dim is None:
            return "memory alone"
        if isinstance(self.combiner, Combiner):
            return f"LMN with a {self.combiner.kind} combiner"
        return f"LMN-fixed theta={self.combiner:g}"

    def initial_state(self, streams: int) -> Any:
        """Empty memory, combiner at t = 0, the model's own initial state."""
        if self.online is not None:
            return self.online.initial_state(streams, self.initial_recurrent(streams))
        dim = self.dim if self.key is None else None
        watched = isinstance(self.combiner, Combiner) and self.combiner.sees_past
        blocks = self.blocks() if watched else None
        memory = LabeledMemory(dim, self.memory, streams, self.device, self.dtype, blocks)
        recurrent = self.initial_recurrent(streams)
        if not isinstance(self.combiner, Combiner):
            return LMNState(memory, None, recurrent)
        combiner = self.combiner.initial_state(streams, len(self.known))
        return LMNState(memory, combiner, recurrent, self._form)

    def blocks(self) -> tuple[int, ...]:
        """Lengths of the key's parts; ``()`` for a key in one piece."""
        return self.key.blocks(self.dim or 0) if isinstance(self.key, Key) else ()

    def advance(self, state: Any, x: Any, width: int) -> Any:
        """Model, memory, combiner, mixture, by the engine that fits. Pure."""
        self.check_form(state)
        return self._engine(state.streams).predict(state, x, width)

    def commit(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Learn the labels, and move the model's own state on."""
        self.check_form(state)
        self._engine(state.streams).observe(state, step, y, mask)

    def forward(self, state: Any, x: Any, width: int) -> Step:
        """What :meth:`advance` does, step by step."""
        with torch.no_grad():
            h, key, logits, recurrent = self.encode(x, state.recurrent, state.streams)
            if isinstance(state, LogitState):
                assert self.online is not None and logits is not None
                return self.online.advance(state, x, key, logits, width, recurrent)
            return self.combine(state, h, key, logits, width, x, recurrent)

    def initial_recurrent(self, streams: int) -> Recurrent:
        """What model and key remember of streams that have seen nothing."""
        key = self.key.initial_state(streams, self.device) if isinstance(self.key, Key) else None
        return self.backbone.initial_state(streams), key

    def update(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """What :meth:`commit` does, step by step."""
        if isinstance(state, LogitState):
            assert self.online is not None and isinstance(step, LogitStep)
            with torch.no_grad():
                self.online.commit(state, step, y, mask)
                state.recurrent = chosen(mask, step.recurrent, state.recurrent)
            return
        assert isinstance(step, LMNStep)
        with torch.no_grad():
            self.learn(state, step, y, mask)
            state.recurrent = ways.moved(mask, step.recurrent, state.recurrent)

    def places(self, state: Any) -> Held | None:
        """Steps are recorded where no part of them waits for the device."""
        if isinstance(state, LogitState):
            return None
        parts = (self.memory, self.combiner, self.backbone.model, self.key)
        if self._kernel is not None or not can_record(self.device, *parts):
            return None
        if isinstance(self.key, Key):
            self.key.prepare(len(self.known) + 1)  # the labels, and the start of a stream
        key, combiner, hooks = self.key, self.combiner, hooks_of(*parts[1:])

        def usable() -> bool:
            same = self.key is key and self._combiner is combiner and self._kernel is None
            return same and not self.backbone.closed and not hooks.of_user()

        return Held(state, usable)

    def rebase(self, state: Any, step: Step, width: int) -> Any:
        """Late label: the memory learns from what was predicted, the states move on from now."""
        now = self.advance(state, step.x, width)
        if isinstance(step, LogitStep):
            return replace(step, recurrent=now.recurrent)
        assert isinstance(step, LMNStep) and isinstance(now, LMNStep)
        return step.moved(now)

    def tensors(self, state: Any) -> dict[str, Tensor]:
        """All of a state, by name."""
        named: dict[str, Tensor] = state.tensors()
        return named

    def restore(self, tensors: dict[str, Tensor], streams: int) -> Any:
        """The state that was saved."""
        state = self.initial_state(streams)
        if isinstance(state, LogitState):
            assert self.online is not None
            return self.online.restore(tensors, state, self._like())
        state.restore(tensors, self.device)
        return state

    def repeated(self, state: Any, n: int) -> Any:
        """``n`` streams that are all where one is, to ask ``n`` questions; to be read only."""
        if isinstance(state, LogitState):
            return state.repeated(n)
        saved = self.tensors(state)
        return self.restore({k: t.expand(n, *t.shape[1:]) for k, t in saved.items()}, n)

    def _like(self) -> Tensor:
        """A tensor of the type and on the device of all others."""
        return torch.empty(0, dtype=self.dtype, device=self.device)

    def signature(self) -> dict[str, Any]:
        """A saved stream must agree on labels, dimension and the form of the combiner."""
        return super().signature() | {
            "dim": self.dim,
            "dtype": str(self.dtype),
            "key": None if self.key is None else type(self.key).__name__,
            "partition": self.partition,
            "combiner": self._form,
            "cells_per_label": self.memory.cells_per_label,
            "capacity": self.memory.capacity,
        }

    def explain(self, step: Step, label: int) -> Explanation:
        """Theta of the label, the shares of model and memory, and the cells behind it."""
        if isinstance(step, LogitStep):
            assert self.online is not None
            return self.online.explain(step, label)
        assert isinstance(step, LMNStep) and step.read is not None
        assert step.memory_probs is not None
        theta, r, s = 1.0, 0.0, float(step.memory_probs[0, label])
        if step.theta is not None and step.model_probs is not None:
            mixed = self.share_of_model(step.model_probs, step.memory_probs)
            theta, r = float(step.theta[0, label]), float(mixed[0, label])
        from_model, from_memory = (1 - theta) * r, theta * s
        total = from_model + from_memory
        return Explanation(
            label=label,
            probability=float(step.probs[0, label]),
            theta=None if step.theta is None else theta,
            model_share=from_model / total if total else 1.0,
            memory_share=from_memory / total if total else 0.0,
            cells=loudest_cells(step.read, step.memory_probs, label),
        )

    @property
    def learns_kernel(self) -> bool:
        """Whether lam and delta are being trained."""
        return self._kernel is not None

    def learn_kernel(self, others: Iterable[LMN] = ()) -> Kernel:
        """Make lam and delta trainable, here and in ``others``, until :meth:`settle_kernel`."""
        self._kernel = Kernel(self.memory).to(self.device, self.dtype)
        for other in others:
            other._kernel = self._kernel
        return self._kernel

    def settle_kernel(self, keep: bool = True) -> None:
        """Make the trained lam and delta, if any, the configured ones, or drop them."""
        if self._kernel is not None and keep:
            lam, delta = (float(value.detach()) for value in self._kernel())
            self.memory = replace(self.memory, lam=lam, delta=delta)
        self._kernel = None

    def around(self, model: nn.Module) -> Self:
        """The same memory and combiner around another model of the same form; close it after use.

        The combiner is shared, so the model must have the same type and device.
        """
        other = copy.copy(self)
        head = None
        if self.backbone.head is not None:
            names = {module: name for name, module in self.backbone.model.named_modules()}
            head = names[self.backbone.head]
        other.wear(model, head, () if self.backbone.head is None else self.known.names)
        try:
            if (other.device, other.dtype) != (self.device, self.dtype):
                raise ModelError(
                    f"the other model is {other.dtype} on {other.device}, the adapter's is "
                    f"{self.dtype} on {self.device}; they share a combiner and must agree"
                )
            other.combiner = self.combiner  # checks that it fits
        except Exception:
            other.close()  # the model goes back as it came
            raise
        return other

    def variant(self, memory: MemoryConfig, combiner: float | Combiner | None) -> Self:
        """The same model with other settings; both share one hook, close either and both close."""
        other = copy.copy(self)
        other.memory, other.combiner = memory, combiner
        return other
