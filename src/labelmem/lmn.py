"""The labeled memory network: a trained model, a memory and the combiner between them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from labelmem import functional as F
from labelmem.around import AroundModel
from labelmem.beside import Beside, called
from labelmem.combiner import Combiner, CombinerState, CombinerStep, View
from labelmem.config import MemoryConfig
from labelmem.errors import ConfigError, InputError, UnsupportedError
from labelmem.explain import Explanation, loudest_cells
from labelmem.fast import alone, array, compiled, row, tensor
from labelmem.fast.mix import mix_one
from labelmem.kernel import Kernel
from labelmem.kernels import fused
from labelmem.keys import Key
from labelmem.lockstep.state import Held, can_record
from labelmem.memory import LabeledMemory, MemoryRead
from labelmem.online import OnlineMethod, Step
from labelmem.trees import chosen, leaves, rebuild, tree_map
from labelmem.trust import believed, recording

__all__ = ["LMN", "LMNState", "LMNStep"]

Recurrent = tuple[Any, Any]


@dataclass
class LMNState:
    """All that ``n`` streams remember."""

    memory: LabeledMemory
    combiner: CombinerState | None
    recurrent: Recurrent
    """The states of the model and of the key."""
    form: Any = "fixed"
    """The form of the combiner that the streams began with."""


@dataclass(frozen=True)
class LMNStep(Step):
    """A step of the adapter, with what its commit needs."""

    h: Tensor | None = None
    key: Tensor | None = None
    read: MemoryRead | None = None
    combined: CombinerStep | None = None
    recurrent: Recurrent = (None, None)
    best: Tensor | None = None
    """(n,) the label with the highest r; None if that was not looked for."""
    highest: Tensor | None = None
    """(n, 2) the two highest of P, likewise."""


class LMN(AroundModel, OnlineMethod[LMNState]):  # type: ignore[override]  # its device is the model's
    """Eq. 1 to 5 and the write, as an online method; :class:`labelmem.Adapter` is its public form.

    Parameters are those of the adapter.
    """

    def __init__(
        self,
        model: nn.Module,
        head: str | nn.Module | None = None,
        labels: Iterable[Hashable] | None = None,
        memory: MemoryConfig | None = None,
        combiner: float | Combiner = 0.5,
        key: Key | Callable[[Any, Tensor], Tensor] | None = None,
        partition: bool = False,
    ) -> None:
        self.wear(model, head, labels)
        self.memory = memory or MemoryConfig()
        self.key, self.partition = key, partition
        self._kernel: Kernel | None = None
        try:
            self.combiner = combiner
        except Exception:
            self.close()  # the model goes back as it came
            raise

    @property
    def combiner(self) -> float | Combiner:
        """The fixed weight of the memory, or the network that decides it."""
        return self._combiner

    @combiner.setter
    def combiner(self, combiner: float | Combiner) -> None:
        if isinstance(combiner, Combiner):
            if self.dim is None:
                raise ConfigError(
                    "with labels=() there is no model score to combine with; leave combiner out"
                )
            parts = len(self._blocks()) or 1
            combiner.build(self.dim, self.device, self.dtype, parts).eval()
        elif not isinstance(combiner, int | float) or not 0 <= combiner <= 1:
            raise ConfigError(
                f"combiner is {combiner!r}; it must be a Combiner, or a fixed theta in [0, 1]"
            )
        self._combiner = combiner
        self._form = combiner.form() if isinstance(combiner, Combiner) else "fixed"

    @property
    def name(self) -> str:  # type: ignore[override]
        """``lmn`` with a combiner, ``lmn-fixed`` without."""
        return "lmn" if isinstance(self.combiner, Combiner) else "lmn-fixed"

    def initial_state(self, streams: int) -> LMNState:
        """Empty memory, combiner at t = 0, the model's own initial state."""
        dim = self.dim if self.key is None else None
        watched = isinstance(self.combiner, Combiner) and self.combiner.sees_past
        blocks = self._blocks() if watched else None
        memory = LabeledMemory(dim, self.memory, streams, self.device, self.dtype, blocks)
        recurrent = self.initial_recurrent(streams)
        if not isinstance(self.combiner, Combiner):
            return LMNState(memory, None, recurrent)
        combiner = self.combiner.initial_state(streams, len(self.known))
        return LMNState(memory, combiner, recurrent, self._form)

    def _blocks(self) -> tuple[int, ...]:
        """Lengths of the key's parts; ``()`` for a key in one piece."""
        return self.key.blocks(self.dim or 0) if isinstance(self.key, Key) else ()

    def advance(self, state: LMNState, x: Any, width: int) -> LMNStep:
        """Model, memory, combiner, mixture. Pure."""
        with torch.no_grad(), called(self.backbone.head, self.device):
            h, key, logits, recurrent = self.encode(x, state.recurrent, state.memory.streams)
            return self.combine(state, h, key, logits, width, x, recurrent)

    def initial_recurrent(self, streams: int) -> Recurrent:
        """What model and key remember of streams that have seen nothing."""
        key = self.key.initial_state(streams, self.device) if isinstance(self.key, Key) else None
        return self.backbone.initial_state(streams), key

    def encode(
        self, x: Any, recurrent: Recurrent, streams: int
    ) -> tuple[Tensor, Tensor, Tensor | None, Recurrent]:
        """Inputs as h (n, d), memory key, logits and the next recurrent states."""
        h, logits, model = self.backbone.run(x, recurrent[0], streams)
        if logits is None or not recording() or not _by_kernel(logits):  # else with the softmax
            self.backbone.check_finite(h, logits)
        if self.key is None:
            return h, h, logits, (model, None)
        if isinstance(self.key, Key):
            key, remembered = self.key(x, h, recurrent[1])
        else:
            key, remembered = self.key(x, h), None
        if key.ndim != 2 or len(key) != streams or not F.finite(key):
            raise InputError(
                f"the key came out with shape {tuple(key.shape)}, or NaN or infinite; expected "
                f"({streams}, d), every value finite"
            )
        return h, key, logits, (model, remembered)

    def combine(
        self,
        state: LMNState,
        h: Tensor,
        key: Tensor,
        logits: Tensor | None,
        width: int,
        x: Any = None,
        recurrent: Recurrent = (None, None),
    ) -> LMNStep:
        """Everything after the model: Eq. 1 to 5. Pure, and differentiable in the combiner.

        ``x`` and ``recurrent``, the inputs and the next states of model and key, are passed on.
        """
        ahead = self._ahead(state, h, logits, width)
        lam, delta = (None, None) if self._kernel is None else self._kernel()
        read = state.memory.read(key, lam, delta)
        if logits is not None and self._compiled(read, logits):
            width = max(width, logits.shape[1])
            told, combined = self._combine_compiled(state, h, logits, read, width)
            P, theta, r, s = told
            return LMNStep(x, P, theta, r, s, h, key, read, combined, recurrent)
        own = isinstance(self.combiner, Combiner) and self.combiner.gives_s and logits is not None
        room = self._room(state, width)
        s = read.score.new_empty(0, 0) if own else read.spread(read.score, width, room[1])
        if logits is None:  # few-shot: the memory alone
            return LMNStep(x, s, memory_probs=s, key=key, read=read, recurrent=recurrent)
        r, best = self._model_score(logits, width, room[0])
        combined = None
        self._check_form(state)
        if isinstance(self.combiner, Combiner):
            assert state.combiner is not None
            if ahead is not None:
                combined = ahead.result()
            else:
                combined = self.combiner(state.combiner, View(h, r, s, read, best))
            theta, s = combined.theta, s if combined.s is None else combined.s
        else:
            theta = r.new_full((1, 1), self.combiner).expand_as(r)
        if alone(r) and not theta.requires_grad and not s.requires_grad:
            P, highest = self._mix_one(r, s, theta, read), None
        else:
            P, highest = self._mix(r, s, theta)
        return LMNStep(x, P, theta, r, s, h, key, read, combined, recurrent, best, highest)

    def _ahead(
        self, state: LMNState, h: Tensor, logits: Tensor | None, width: int
    ) -> Beside[CombinerStep] | None:
        """The combiner's step, begun before all else in a recording, if it looks at h alone."""
        if not recording() or logits is None or not isinstance(self.combiner, Combiner):
            return None
        self._check_form(state)
        assert state.combiner is not None
        return self.combiner.ahead(state.combiner, h, max(width, logits.shape[1]))

    def _compiled(self, read: MemoryRead, logits: Tensor) -> bool:
        """Whether what comes after the read is done by compiled kernels."""
        if not read.compiled or torch.is_grad_enabled() or not alone(logits):
            return False
        if not compiled(logits.dtype == torch.float32):
            return False
        return not isinstance(self.combiner, Combiner) or self.combiner.compiles(logits)

    def _combine_compiled(
        self, state: LMNState, h: Tensor, logits: Tensor, read: MemoryRead, width: int
    ) -> tuple[tuple[Tensor, ...], CombinerStep | None]:
        """P, theta, r and s, and the combiner's step, for one stream on a CPU."""
        from labelmem.compiled.cells import CompiledRead
        from labelmem.compiled.mix import mix_fixed

        assert isinstance(read, CompiledRead)
        self._check_form(state)
        told, combined = torch.empty(4, 1, width), None
        out = told.numpy()[:, 0]
        if isinstance(self.combiner, Combiner):
            assert state.combiner is not None
            seen = (state.combiner, row(h), row(logits), read)
            combined = self.combiner.combine_one(*seen, self.partition, out)
        else:
            known = (row(logits), read.told("label"), read.scores_of_cells)
            mix_fixed(*known, float(self.combiner), self.partition, out)
        return told.unbind(), combined

    def _room(self, state: LMNState, width: int) -> tuple[Tensor | None, Tensor | None]:
        """Where fused kernels put r and s, if the combiner has a wish."""
        if state.combiner is None or not isinstance(self.combiner, Combiner):
            return None, None
        return self.combiner.room(state.combiner, width) or (None, None)

    def _model_score(
        self, logits: Tensor, width: int, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Eq. 1, with zeros for the labels that are the streams' own; the best (n,) by a kernel.

        ``out`` is where a fused kernel puts it.
        """
        if _by_kernel(logits):
            from labelmem.kernels.mix import believed_by_model

            r, best, whole = believed_by_model(logits, max(width, logits.shape[1]), out)
            if recording():
                believed(whole.all)
            return r, best
        r = F.model_score(logits)
        own = width - r.shape[1]
        return torch.nn.functional.pad(r, (0, own)) if own > 0 else r, None

    def _mix(self, r: Tensor, s: Tensor, theta: Tensor) -> tuple[Tensor, Tensor | None]:
        """Eq. 5; its two highest (n, 2) by a kernel."""
        if fused(r, s, theta) and not (theta.requires_grad or s.requires_grad or r.requires_grad):
            from labelmem.kernels.mix import mixed

            return mixed(r, s, theta, self.partition)
        return F.mix(self.share_of_model(r, s), s, theta), None

    def _mix_one(self, r: Tensor, s: Tensor, theta: Tensor, read: MemoryRead) -> Tensor:
        """Eq. 5 for one stream on a CPU: s is zero but at the labels in memory."""
        names = array(read.label)[0, read.lead]
        shared = theta.shape[1] > 0 and theta.stride(1) == 0  # one theta for all labels
        weight = float(theta[0, 0]) if shared else array(theta)[0]
        return tensor(mix_one(array(r)[0], array(s)[0, names], weight, names, self.partition))

    def share_of_model(self, r: Tensor, s: Tensor) -> Tensor:
        """What of r is mixed: all of it, or the labels outside of memory."""
        return F.outside(r, s) if self.partition else r

    def commit(self, state: LMNState, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Learn the labels, and move the model's own state on."""
        assert isinstance(step, LMNStep)
        with torch.no_grad():
            moved = Beside(lambda: self._moved(state, step, mask), y.device)
            self.learn(state, step, y, mask)
        state.recurrent = moved.result()

    def _moved(self, state: LMNState, step: LMNStep, mask: Tensor | None) -> Recurrent:
        """The next states of model and key; in a recording they are put where the old ones lie."""
        new = chosen(mask, step.recurrent, state.recurrent)
        if not recording():
            return new
        put: Recurrent = tree_map(Tensor.copy_, state.recurrent, new)
        return put

    def learn(self, state: LMNState, step: LMNStep, y: Tensor, mask: Tensor | None) -> None:
        """Move the combiner on (keeping its graph) and write where the margin says so."""
        self._check_form(state)
        combiner, beside = self.combiner, None
        if step.combined is not None:
            assert isinstance(combiner, Combiner) and state.combiner is not None
            assert step.model_probs is not None and step.memory_probs is not None
            assert step.h is not None and step.read is not None
            view = View(step.h, step.model_probs, step.memory_probs, step.read, step.best)
            told = (state.combiner, step.combined, view, y, mask)
            beside = Beside(lambda: combiner.observe(*told), y.device)
        assert step.key is not None
        state.memory.write(step.key, y, step.probs, mask, step.highest)
        if beside is not None:
            state.combiner = beside.result()

    def places(self, state: LMNState) -> Held | None:
        """Steps are recorded where no part of them waits for the device."""
        parts = (self.memory, self.combiner, self.backbone.model, self.key)
        if self._kernel is not None or not can_record(self.device, *parts):
            return None
        if isinstance(self.key, Key):
            self.key.prepare(len(self.known) + 1)  # the labels, and the start of a stream
        return Held(state)

    def rebase(self, state: LMNState, step: Step, width: int) -> LMNStep:
        """Late label: the memory learns from what was predicted, the states move on from now."""
        assert isinstance(step, LMNStep)
        now = self.advance(state, step.x, width)
        return replace(step, combined=now.combined, recurrent=now.recurrent)

    def tensors(self, state: LMNState) -> dict[str, Tensor]:
        """All of a state, by name."""
        saved = {f"memory.{name}": t for name, t in state.memory.tensors().items()}
        if state.combiner is not None:
            saved |= {f"combiner.{name}": t for name, t in state.combiner.tensors().items()}
        return saved | {f"model.{i}": t for i, t in enumerate(leaves(state.recurrent))}

    def restore(self, tensors: dict[str, Tensor], streams: int) -> LMNState:
        """The state that was saved."""
        state = self.initial_state(streams)
        state.memory.restore(_part(tensors, "memory."))
        if state.combiner is not None:
            parts = {k: t.to(self.device) for k, t in _part(tensors, "combiner.").items()}
            state.combiner = type(state.combiner)(**parts)
        saved = (tensors[f"model.{i}"].to(self.device) for i in range(len(tensors)))
        state.recurrent = rebuild(state.recurrent, saved)
        return state

    def _check_form(self, state: LMNState) -> None:
        if state.form != self._form:
            raise UnsupportedError(
                "this stream began with another combiner than the adapter has now; start a new "
                "stream, or give the adapter back the combiner it had"
            )

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

    def learn_kernel(self) -> Kernel:
        """Make lam and delta trainable until :meth:`settle_kernel`."""
        self._kernel = Kernel(self.memory).to(self.device, self.dtype)
        return self._kernel

    def settle_kernel(self) -> None:
        """Make the trained lam and delta, if any, the configured ones."""
        if self._kernel is not None:
            lam, delta = (float(value.detach()) for value in self._kernel())
            self.memory = replace(self.memory, lam=lam, delta=delta)
            self._kernel = None

    def around(self, model: nn.Module) -> Self:
        """The same memory and combiner around another model of the same form."""
        other = copy.copy(self)
        head = None
        if self.backbone.head is not None:
            names = {module: name for name, module in self.backbone.model.named_modules()}
            head = names[self.backbone.head]
        other.wear(model, head, () if self.backbone.head is None else self.known.names)
        other.combiner = self.combiner  # checks that it fits
        return other

    def variant(self, memory: MemoryConfig, combiner: float | Combiner) -> Self:
        """The same model with other settings; both share one hook, close either and both close."""
        other = copy.copy(self)
        other.memory, other.combiner = memory, combiner
        return other


def _by_kernel(logits: Tensor) -> bool:
    """Whether a fused kernel does Eq. 1, and looks whether logits are finite on its way."""
    return fused(logits) and not logits.requires_grad


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
