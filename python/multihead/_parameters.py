"""The numbers of a model: its parameters, and the matrices of heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native
from ._arguments import checked
from ._errors import UnknownNameError, UsageError
from ._facts import ModelFacts
from ._names import HeadName, head_name
from ._observation import Floats


class Parameters(Mapping[str, Floats]):
    """The parameters of a model by their names, each float32 [rows, columns] and read-only. Rows x are multiplied as x W. An array
    shows the model's own numbers where these are float32, and keeps the model; of others (bfloat16, quantised ones) each look makes
    a copy."""

    def __init__(self, native: _native.Model) -> None:
        self._native = native
        self._shapes = {name: (rows, columns) for name, rows, columns in native.parameter_shapes()}

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """(rows, columns) of each, without a look at the numbers."""
        return dict(self._shapes)

    def __getitem__(self, name: str) -> Floats:
        if name not in self._shapes:
            near = _native.suggestions(str(name), list(self._shapes))
            remedy = f"did you mean {near[0]!r}?" if near else "`model.parameters` lists all"
            raise UnknownNameError(f"the model has no parameter {name!r}; {remedy}")
        return self._native.parameter(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __repr__(self) -> str:
        return f"<{len(self)} parameters: {', '.join(list(self)[:3])}, ...>"

    def __reduce__(self) -> Any:
        raise TypeError("parameters cannot be pickled; keep the arrays that you need: numpy.array(parameters[name])")


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """The matrices of a head, float32: q = x W_Q + b_Q, k and v likewise, and what it adds to the stream is z W_O.

    Norms before and behind are not folded in. Heads of one group have the same W_K, b_K, W_V and b_V. Of a whole attention each has
    an axis more, its heads (of W_K and W_V the groups).
    """

    W_Q: Floats  # [d_model, d_key]
    W_K: Floats  # [d_model, d_key]
    W_V: Floats  # [d_model, d_value]
    W_O: Floats  # [d_value, d_model]
    b_Q: Floats  # [d_key], zeros where there is no bias  # noqa: N815
    b_K: Floats  # [d_key]  # noqa: N815
    b_V: Floats  # [d_value]  # noqa: N815
    b_O: Floats  # [d_model], which the heads of the attention add together, once  # noqa: N815

    def __repr__(self) -> str:
        return f"<HeadWeights: W_Q {list(self.W_Q.shape)}, W_K {list(self.W_K.shape)}, W_V {list(self.W_V.shape)}>"


class Numbers(ModelFacts):
    """What a model is made of."""

    @property
    def parameters(self) -> Parameters:
        """All parameters, by name: ``model.parameters["encoder.0.self_attention.w_q"]``."""
        return Parameters(self._native)

    @checked
    def head_weights(self, name: HeadName) -> HeadWeights:
        """The matrices of a head, "encoder.3.self_attention.1", or of all heads of an attention, "encoder.3.self_attention".

        ::

            head = model.head_weights("decoder.5.self_attention.3")
            head.W_V @ head.W_O                              # W_OV [d_model, d_model]

        Raises UsageError on a head that the model does not have, and where heads have no such matrices.
        """
        given = head_name(name)
        attention, _, number = given.rpartition(".")
        if not number.isdigit():
            return self._matrices(given)
        self.heads_named(given)
        found, at = self._matrices(attention), int(number)
        heads = len(found.W_Q)
        return HeadWeights(**{
            field: array if field == "b_O" else array[at * len(array) // heads] for field, array in vars(found).items()
        })  # fmt: skip

    def _matrices(self, attention: str) -> HeadWeights:
        w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = self._native.head_matrices(attention)
        return HeadWeights(w_q, w_k, w_v, w_o, b_q[:, 0], b_k[:, 0], b_v[:, 0], b_o[0, 0])

    @property
    def W_E(self) -> Floats:  # noqa: N802
        """The embeddings of the tokens that the model reads, of a translator those of the source: [V, width], read-only."""
        return self.parameters["embedding"]

    @property
    def W_U(self) -> Floats:  # noqa: N802
        """The layer that predicts words, [d_model, V]: a logit is a last state, normed, times a column. Read-only."""
        if not self._native.predicts:
            raise UsageError(f"{self._name} predicts no words, and has no W_U")
        return self._native.output_table().T
