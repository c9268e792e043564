"""The trained model as the adapter sees it: an input goes in, h and logits come out."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from labelmem.errors import ClosedError, InputError, ModelError
from labelmem.fast import alone, bounded
from labelmem.functional import finite
from labelmem.trees import tree_map

__all__ = ["Backbone", "Hooks", "find_head"]


def find_head(model: nn.Module, head: str | nn.Module | None) -> nn.Linear:
    """The last linear layer of a model, or the one that is named or given.

    Examples
    --------
    >>> find_head(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), None)
    Linear(in_features=8, out_features=3, bias=True)
    """
    modules = dict(model.named_modules())
    linear = [name for name, module in modules.items() if isinstance(module, nn.Linear)]
    if isinstance(head, str):
        if head not in modules:
            raise ModelError(f"the model has no module {head!r}; its linear layers are {linear}")
        head = modules[head]
    if head is None:
        if not linear:
            raise ModelError(
                f"{type(model).__name__} has no nn.Linear to adapt; name the classifying layer "
                "with head=..., or pass labels=() to use the model's output as an embedding"
            )
        head = modules[linear[-1]]
    if not isinstance(head, nn.Linear):
        raise ModelError(
            f"the head is a {type(head).__name__}; it must be an nn.Linear of this model, "
            f"one of {linear}"
        )
    if all(head is not module for module in modules.values()):
        raise ModelError("the given head is not a part of the given model")
    return head


class _Pass:
    """One call of a model: what entered and left the head belongs to it alone."""

    __slots__ = ("caught", "of")

    def __init__(self, of: Backbone) -> None:
        self.of = of
        self.caught: tuple[Tensor, Tensor] | None = None


class _Thread(threading.local):
    """What a thread is at."""

    latest: _Pass | None = None
    """The pass under way. One inside another, of a model that asks an adapter, puts it aside."""


_HERE = _Thread()


class Backbone:
    """Runs a frozen model and catches what enters and leaves its head.

    A model is *recurrent* when it has a method ``initial_state(n)`` that returns tensors with the
    stream dimension first; it is then called as ``model(x, state)`` and returns
    ``(anything, new_state)``. Any other model is called as ``model(x)``.

    Parameters
    ----------
    model
        The trained module. It is put in eval mode, never trained, and given back by :meth:`close`
        as it was.
    head
        The last linear layer, its name, or None to find it; False takes the model's output as h.
    """

    def __init__(self, model: nn.Module, head: str | nn.Module | bool | None = None) -> None:
        if not isinstance(model, nn.Module):
            raise ModelError(f"the model is a {type(model).__name__}; it must be a torch nn.Module")
        self.model = model
        self.head = None if isinstance(head, bool) else find_head(model, head)
        self.recurrent = hasattr(model, "initial_state")
        self._was_training = [(module, module.training) for module in model.modules()]
        self._hook = self.head.register_forward_hook(self._catch) if self.head else None
        self._closed = False
        model.eval()

    def _catch(self, _: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        here = _HERE.latest
        if here is not None and here.of is self:  # others may call the model meanwhile
            here.caught = (inputs[0], output)

    @property
    def device(self) -> torch.device:
        """Where the model lives now."""
        return self.like.device

    @property
    def dtype(self) -> torch.dtype:
        """The floating point type of the model."""
        return self.like.dtype

    @property
    def like(self) -> Tensor:
        """A tensor of the model's type, where the model lives."""
        if self.head is not None:
            return self.head.weight
        return next(self.model.parameters(), torch.empty(0))

    def initial_state(self, streams: int) -> Any:
        """The recurrent state of ``streams`` new streams; None for a stateless model."""
        self.check_open()
        if not self.recurrent:
            return None
        return self.model.initial_state(streams)  # type: ignore[operator]

    def __call__(self, x: Any, state: Any, streams: int) -> tuple[Tensor, Tensor | None, Any]:
        """Run one step: h (n, d), logits (n, L) or None, and the next recurrent state."""
        h, logits, state = self.run(x, state, streams)
        self.check_finite(h, logits)
        return h, logits, state

    def run(self, x: Any, state: Any, streams: int) -> tuple[Tensor, Tensor | None, Any]:
        """The same for who sees to it that what came out is finite."""
        self.check_open()
        if any(module.training for module, _ in self._was_training):
            self.model.eval()
        output, caught = self._run(x, state, streams)
        if self.recurrent:
            if not isinstance(output, tuple) or len(output) < 2:
                raise ModelError(
                    f"{type(self.model).__name__} has initial_state, so model(x, state) must "
                    "return (logits, new_state)"
                )
            output, state = output[0], output[-1]
        h, logits = self._answer(output, caught)
        self._check_form(h, streams)
        return h, logits, state

    def _run(self, x: Any, state: Any, streams: int) -> tuple[Any, tuple[Tensor, Tensor] | None]:
        outer, own = _HERE.latest, _Pass(self)
        _HERE.latest = own
        try:
            output = self.model(x, state) if self.recurrent else self.model(x)
            return output, own.caught
        except (RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
            shapes = tree_map(lambda leaf: tuple(leaf.shape), x)
            raise InputError(
                f"{type(self.model).__name__} cannot take an input of shape {shapes} "
                f"({streams} stream(s), one row each): {error}"
            ) from error
        finally:
            _HERE.latest = outer

    def _answer(
        self, output: Any, caught: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor | None]:
        if self.head is None:
            return output, None
        if caught is None:
            raise ModelError(
                f"the head {self.head} took no part in the model's forward pass; name the layer "
                "that gives the logits with head=..."
            )
        return caught

    def _check_form(self, h: Tensor, streams: int) -> None:
        if not isinstance(h, Tensor) or h.ndim != 2 or h.shape[0] != streams:
            seen = tuple(h.shape) if isinstance(h, Tensor) else type(h).__name__
            raise InputError(
                f"for {streams} input(s) the model's hidden vector h came out as {seen}; expected "
                f"({streams}, d): give one input per stream, without a time dimension"
            )

    def check_finite(self, h: Tensor, logits: Tensor | None) -> None:
        """Refuse what is NaN or infinite."""
        seen = h if logits is None else logits  # finite logits come of a finite h only
        if (alone(seen) and bounded(seen)) or finite(seen):
            return
        for name, tensor in (("hidden vector h", h), ("logits", logits)):
            if tensor is not None and not finite(tensor):
                raise ModelError(
                    f"the model's {name} have NaN or infinite values for an input that is finite; "
                    "look at its weights, or scale the input"
                )

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def check_open(self) -> None:
        """Refuse to run after :meth:`close`."""
        if self._closed:
            raise ClosedError("this adapter was closed; make a new one around the model")

    def close(self) -> None:
        """Remove the hook and put every module back in the mode it was found in."""
        if self._hook is not None:
            self._hook.remove()
        if not self._closed:
            for module, training in self._was_training:
                module.training = training
        self._closed = True


class Hooks:
    """The forward hooks of some modules: what skips a module's call would skip them too.

    Examples
    --------
    >>> model = nn.Linear(2, 2)
    >>> hooks, backbone = Hooks([model]), Backbone(model)
    >>> hooks.of_user()     # those of backbones do not count
    False
    >>> handle = model.register_forward_hook(lambda *_: None)
    >>> hooks.of_user()
    True
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        held = [torch_module._global_forward_hooks, torch_module._global_forward_pre_hooks]
        held += [found for m in modules for found in (m._forward_hooks, m._forward_pre_hooks)]
        self._held: list[dict[int, Any]] = held

    def of_user(self) -> bool:
        """Whether anyone but a backbone has hooks there now."""
        return any(
            getattr(hook, "__func__", None) is not Backbone._catch
            for hooks in self._held
            if hooks
            for hook in tuple(hooks.values())  # other threads come and go
        )
