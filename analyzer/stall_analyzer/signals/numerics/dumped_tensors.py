"""What a debugger's dump says: where the first NaN was produced, and which rectifiers are dead."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from stall_analyzer.model.debug_dump import CodeLine, DebugDump, DumpedOp, OpKey, TensorKey
from stall_analyzer.model.records import dataclass

# Ops by which a step changes weights, and those that write other variables, such as metrics.
UPDATES = ("AssignSubVariableOp", "ResourceApply", "ResourceSparseApply", "ResourceScatter")
WRITES = (*UPDATES, "AssignAddVariableOp", "AssignVariableOp")
READS = frozenset({"ReadVariableOp", "ResourceGather", "VariableV2", "_ReadVariablesOp"})
LAYERS = ("MatMul", "BatchMatMul", "Einsum", "Conv", "DepthwiseConv", "BiasAdd")  # they use weights
ARGUMENTS = frozenset({"Placeholder", "PlaceholderWithDefault", "_Arg"})
# Ops that call other graphs. The debugger leaves some of them out, so they have no type.
CALLS = frozenset({"", "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "While",
                   "StatelessWhile", "Case", "StatelessCase"})  # fmt: skip
FROM_OTHER_GRAPHS = ARGUMENTS | CALLS
# How data comes in, and how the names of graphs of Dataset.map and the like begin.
DATA = ("IteratorGetNext", "MultiDeviceIteratorGetNext")
DATASET_GRAPH = "Dataset_"
RECTIFIERS = frozenset({"Relu", "Relu6"})
GRADIENT = "gradient_tape/"  # begins the names of gradient ops; the op they belong to follows

_UNKNOWN = DumpedOp("", "", ())  # where the file of graphs was cut off


@dataclass(frozen=True)
class Origin:
    """The op that produced the first NaN or infinity that mattered."""

    name: str  # of the op; empty for one that ran eagerly, as is its graph
    type: str
    graph: str
    at_ns: int
    has_nan: bool
    has_inf: bool
    line: CodeLine | None  # the user's line that created the op, or the op whose gradient it is
    spoils: str  # what it reached: "weights", "variables" or ""
    inputs_seen: bool  # the dump shows that its inputs were finite

    @property
    def is_older_than_dump(self) -> bool:
        """Whether a variable was already bad when it was first read."""
        return self.type in READS


@dataclass(frozen=True)
class ZeroOutputs:
    """A rectifier in a graph whose last outputs are all zeros, or nearly all."""

    op: str
    records: int
    nearly_all_run: int  # how many of the last records are nearly all zeros
    all_run: int  # how many of them contain nothing else
    line: CodeLine | None


def origin_of(dump: DebugDump) -> Origin | None:
    return _Search(dump).origin()


def zero_outputs(dump: DebugDump) -> tuple[ZeroOutputs, ...]:
    """One for each name: in the graph that ran most often, which is the one that trains."""
    found: dict[str, ZeroOutputs] = {}
    for (graph, name, _), tensor in dump.tensors.items():
        op = dump.ops.get((graph, name), _UNKNOWN)
        if op.type in RECTIFIERS and (name not in found or tensor.records > found[name].records):
            runs = tensor.nearly_zero_run, tensor.all_zero_run
            found[name] = ZeroOutputs(name, tensor.records, *runs, op.line)
    return tuple(zeros for _, zeros in sorted(found.items()) if zeros.nearly_all_run)


@dataclass(frozen=True)
class _Search:
    """Follows what spoiled the variables back to where it was produced.

    The order of the records does not show that: the debugger looks at tensors in parallel with the
    graph's own work, and infinities that a mask creates on purpose may come long before. So the
    search follows the graph, among the tensors that went bad in the same call of the function.
    """

    dump: DebugDump

    @cached_property
    def bad_ns(self) -> dict[TensorKey, int]:
        """When each tensor was first not finite. Constants are left out: theirs is on purpose."""
        return {
            key: tensor.bad_ns
            for key, tensor in self.dump.tensors.items()
            if tensor.bad_ns is not None and self._op(key).type != "Const"
        }

    def origin(self) -> Origin | None:
        if not self.bad_ns:
            return None
        updates, written = self._feeding(UPDATES), self._feeding(WRITES)
        nan = {key for key in self.bad_ns if self.dump.tensors[key].has_nan}
        first = self._earliest(updates or written or nan or self.bad_ns)
        since_ns, until_ns = self._call_of(first)
        spoiled = {key for key in written or self.bad_ns if since_ns < self.bad_ns[key] <= until_ns}
        key = self._earliest(self._roots(spoiled | {first}, until_ns))
        key = self._outside(key, since_ns, until_ns) or key
        if self._type(key).startswith(DATA):
            key = self._in_dataset(self.bad_ns[key]) or key
        op, tensor = self._op(key), self.dump.tensors[key]
        return Origin(
            name=key[1] if key[0] else "",
            type=op.type,
            graph=op.graph,
            at_ns=self.bad_ns[key],
            has_nan=tensor.has_nan,
            has_inf=tensor.has_inf,
            line=self._line(key, op),
            spoils=self._spoiled(updates, written),
            inputs_seen=self._are_inputs_seen(key, until_ns),
        )

    def _spoiled(self, updates: set[TensorKey], written: set[TensorKey]) -> str:
        read = {key for key in self._feeding(LAYERS) if self._type(key) in READS}
        return "weights" if updates or read else "variables" if written else ""

    def _feeding(self, types: tuple[str, ...]) -> set[TensorKey]:
        """Bad tensors that ops of these types were given."""
        return {
            tensor
            for key, op in self.dump.ops.items()
            if op.type.startswith(types)
            for tensor in self._inputs(key)
            if tensor in self.bad_ns
        }

    def _inputs(self, key: OpKey) -> set[TensorKey]:
        """An op's inputs, as the debugger saw them: it leaves out Identity and the like.

        It did not see what came from another graph: for that, the argument or the call counts.
        """
        graph, inputs = key[0], self._op(key).inputs
        found: set[TensorKey] = set()
        waiting, seen = list(inputs), set(inputs)
        while waiting:
            tensor = _tensor_key(graph, waiting.pop())
            if tensor in self.dump.tensors or self._type(tensor) in FROM_OTHER_GRAPHS:
                found.add(tensor)
                continue
            further = set(self._op(tensor).inputs) - seen
            seen |= further
            waiting.extend(further)
        return found

    def _call_of(self, key: TensorKey) -> tuple[int, int]:
        """From when to when the function ran in which a tensor first went bad.

        A call that runs the same op again contains more than one step: what went bad later in it
        may be a consequence.
        """
        ends, at_ns = self.dump.call_ends_ns, self.bad_ns[key]
        row = int(np.searchsorted(ends, at_ns))
        since_ns = int(ends[row - 1]) if row else 0
        until_ns = int(ends[row]) if row < len(ends) else at_ns
        again_ns = self.dump.tensors[key].after_bad_ns
        return since_ns, at_ns if again_ns is not None and again_ns <= until_ns else until_ns

    def _roots(self, starts: Iterable[TensorKey], until_ns: int) -> set[TensorKey]:
        """Where the bad values that reached `starts` come from: bad ops with good inputs."""
        roots: set[TensorKey] = set()
        waiting, seen = list(starts), set(starts)
        while waiting:
            key = waiting.pop()
            before = {k for k in self._inputs(key[:2]) if self._was_bad(k, until_ns)}
            if not before:
                roots.add(key)
            waiting.extend(before - seen)
            seen |= before
        return roots or set(starts)  # a loop has no root

    def _was_bad(self, key: TensorKey, until_ns: int) -> bool:
        """Whether it was bad by then. If the dump never saw it good, it was bad before the dump."""
        if key not in self.bad_ns:
            return False
        return self.bad_ns[key] <= max(until_ns, self.dump.tensors[key].first_ns)

    def _outside(self, key: TensorKey, since_ns: int, until_ns: int) -> TensorKey | None:
        """The source of a bad value from another graph: the data, or an op of that graph."""
        if self._type(key) in READS or not self._is_given(key):
            return None
        others = {
            other
            for other, bad_ns in self.bad_ns.items()
            if other[0] != key[0]
            and since_ns < bad_ns <= until_ns
            and self._is_first(other, until_ns)
        }
        data = {other for other in others if self._type(other).startswith(DATA)}
        earlier = {other for other in others if other[0] and self.bad_ns[other] < self.bad_ns[key]}
        return self._earliest(data or earlier) if data or earlier else None

    def _in_dataset(self, until_ns: int) -> TensorKey | None:
        """The op in a map or filter of the input pipeline that made the data bad."""
        made = {
            key
            for key, bad_ns in self.bad_ns.items()
            if self._op(key).graph.startswith(DATASET_GRAPH)
            and bad_ns <= until_ns
            and self._is_first(key, until_ns)
        }
        return self._earliest(made) if made else None

    def _is_first(self, key: TensorKey, until_ns: int) -> bool:
        """Neither an argument nor a consequence of a bad tensor in its own graph."""
        bad_inputs = any(self._was_bad(k, until_ns) for k in self._inputs(key[:2]))
        return self._type(key) not in ARGUMENTS and not bad_inputs

    def _is_given(self, key: TensorKey) -> bool:
        """Whether it is an argument of its graph, or computed from a value of another graph."""
        unseen = self._inputs(key[:2]) - self.dump.tensors.keys()
        return self._type(key) in ARGUMENTS or bool(unseen)

    def _are_inputs_seen(self, key: TensorKey, until_ns: int) -> bool:
        inputs = self._inputs(key[:2])
        known = self.dump.tensors
        return bool(inputs) and all(k in known and known[k].first_ns <= until_ns for k in inputs)

    def _earliest(self, keys: Iterable[TensorKey]) -> TensorKey:
        return min(keys, key=lambda key: (self.bad_ns[key], key))

    def _op(self, key: OpKey | TensorKey) -> DumpedOp:
        return self.dump.ops.get((key[0], key[1]), _UNKNOWN)

    def _type(self, key: TensorKey) -> str:
        return self._op(key).type

    def _line(self, key: TensorKey, op: DumpedOp) -> CodeLine | None:
        """A gradient op is created where the gradient is requested: its inputs say more."""
        if GRADIENT in key[1]:
            for name in op.inputs:
                line = self._op(_tensor_key(key[0], name)).line
                if GRADIENT not in name and line is not None and line != op.line:
                    return line
        return op.line


def _tensor_key(graph: str, tensor: str) -> TensorKey:
    """The key of a tensor, from what ops call their inputs: "name:output"."""
    name, _, output = tensor.rpartition(":")
    return (graph, name, int(output)) if output.isdecimal() else (graph, tensor, 0)
