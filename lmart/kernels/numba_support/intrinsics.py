"""Single machine instructions that Numba has no name for, as functions for kernels; each with its plain form.

A change here is noticed by the cache of every kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numba import config, types
from numba.extending import intrinsic

from lmart.array_types import Int64Array, UInt8Array

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.typing.context import BaseContext as TypingContext
    from numba.core.typing.templates import Signature

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def prefetch(array: npt.NDArray[np.generic], index: int) -> None:
        """Do nothing: the plain form of a hint to the processor."""

    def load_word(array: UInt8Array, index: np.uint64) -> np.uint64:
        """Return the word of eight bytes at array[index]: the plain form of one instruction."""
        return np.uint64(int.from_bytes(array[int(index) : int(index) + 8].tobytes(), "little"))

    def store_word(array: UInt8Array, index: np.uint64, word: np.uint64) -> None:
        """Write the word to the eight bytes at array[index]: the plain form of one instruction."""
        array[int(index) : int(index) + 8] = np.frombuffer(int(word).to_bytes(8, "little"), np.uint8)

    def number_bits(number: float) -> np.uint64:
        """Return the 64 bits of a number: the plain form of one instruction."""
        return np.uint64(np.float64(number).view(np.uint64))

    def trailing_zeros(word: np.uint64) -> np.uint64:
        """Return how many bits are 0 below the lowest set bit; 64 if none is set: the plain form of one instruction."""
        bits = int(word)
        return np.uint64((bits & -bits).bit_length() - 1 if bits else 64)

    def set_bits(word: np.uint64) -> np.uint64:
        """Return how many bits are set: the plain form of one instruction."""
        return np.uint64(int(word).bit_count())

    def byte_marks(text: UInt8Array, index: np.uint64, low: int, high: int) -> np.uint64:
        """Return a bit for each of the 64 bytes at text[index], the first lowest: set if the byte is in low..high."""
        some = text[int(index) : int(index) + 64]
        return np.uint64(np.packbits((some >= low) & (some <= high), bitorder="little").view(np.uint64)[0])

    def list_running_sums(
        values: Int64Array, first: int, last: int, running: int, listed: Int64Array
    ) -> tuple[int, int, int]:
        """Do nothing: the plain form, as on a processor without the instruction."""
        return first, 1, running

    def clear_where_above(
        bits: UInt8Array, bits_row: int, codes: UInt8Array, codes_row: int, flip: int, code: int, mask: int
    ) -> None:
        """Clear bits that are not in the mask where a code, with `flip` its bits turned, is above another.

        In uint8[*, 128]: the plain form of a few instructions on 128 bytes.
        """
        bits[bits_row][(codes[codes_row] ^ np.uint8(flip)) > code] &= np.uint8(mask)

else:

    @intrinsic
    def prefetch(typing_context: TypingContext, array: types.Type, index: types.Type) -> Any:
        """Ask the processor to fetch array[index] soon; the index may lie outside the array."""

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir
            from numba.core import cgutils

            view = context.make_array(signature.args[0])(context, builder, arguments[0])  # type: ignore[no-untyped-call]
            pointer = builder.gep(view.data, [arguments[1]])
            byte = ir.IntType(8).as_pointer()
            word = ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            hint = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
            builder.call(hint, [builder.bitcast(pointer, byte), word(0), word(3), word(1)])
            return context.get_dummy_value()  # type: ignore[no-untyped-call]

        return types.void(array, types.intp), codegen

    @intrinsic
    def load_word(typing_context: TypingContext, array: types.Type, index: types.Type) -> Any:
        """Return the word of eight bytes at array[index], which need not be aligned."""

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir

            view = context.make_array(signature.args[0])(context, builder, arguments[0])  # type: ignore[no-untyped-call]
            pointer = builder.gep(view.data, [arguments[1]])
            return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

        return types.uint64(array, types.uint64), codegen

    @intrinsic
    def store_word(typing_context: TypingContext, array: types.Type, index: types.Type, word: types.Type) -> Any:
        """Write the word to the eight bytes at array[index], which need not be aligned."""

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir

            view = context.make_array(signature.args[0])(context, builder, arguments[0])  # type: ignore[no-untyped-call]
            pointer = builder.gep(view.data, [arguments[1]])
            builder.store(arguments[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
            return context.get_dummy_value()  # type: ignore[no-untyped-call]

        return types.void(array, types.uint64, types.uint64), codegen

    @intrinsic
    def number_bits(typing_context: TypingContext, number: types.Type) -> Any:
        """Return the 64 bits of a number."""

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir

            return builder.bitcast(arguments[0], ir.IntType(64))

        return types.uint64(types.float64), codegen

    @intrinsic
    def trailing_zeros(typing_context: TypingContext, word: types.Type) -> Any:
        """Return how many bits are 0 below the lowest set bit; 64 if none is set."""

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir

            return builder.cttz(arguments[0], ir.IntType(1)(0))

        return types.uint64(types.uint64), codegen

    @intrinsic
    def set_bits(typing_context: TypingContext, word: types.Type) -> Any:
        """Return how many bits are set."""

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            return builder.ctpop(arguments[0])

        return types.uint64(types.uint64), codegen

    @intrinsic
    def byte_marks(
        typing_context: TypingContext, text: types.Type, index: types.Type, low: types.Type, high: types.Type
    ) -> Any:
        """Return a bit for each of the 64 bytes at text[index], the first lowest: set if the byte is in low..high."""

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir

            byte, number = ir.IntType(8), ir.IntType(32)
            vector = ir.VectorType(byte, 64)

            def in_each_byte(value: Value) -> Value:
                single = builder.insert_element(vector(None), builder.trunc(value, byte), number(0))
                return builder.shuffle_vector(single, vector(None), ir.VectorType(number, 64)(None))

            view = context.make_array(signature.args[0])(context, builder, arguments[0])  # type: ignore[no-untyped-call]
            pointer = builder.gep(view.data, [arguments[1]])
            some = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)
            least = in_each_byte(arguments[2])
            span = builder.sub(in_each_byte(arguments[3]), least)
            found = builder.icmp_unsigned("<=", builder.sub(some, least), span)
            return builder.bitcast(found, ir.IntType(64))

        return types.uint64(text, types.uint64, types.int64, types.int64), codegen

    @intrinsic
    def list_running_sums(
        typing_context: TypingContext,
        values: types.Type,
        first: types.Type,
        last: types.Type,
        running: types.Type,
        listed: types.Type,
    ) -> Any:
        """List the running sum at each value that is not 0, from listed[1] on, eight values at a time if that is fast.

        values  : int64[n], of which values[first:last], in      first, last : int64
        running : int64, the sum before the first
        listed  : int64[>= last - first + 8], out
        Returns the first value that is left to do, the place after the last sum listed, and the sum before that value.
        Only a processor with AVX-512 puts eight sums together in one instruction; others have all left to do.
        """

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir
            from numba.core import cgutils

            whole, lane, width = ir.IntType(64), ir.IntType(32), 8
            _, begin, end, sum_before, _ = arguments
            if "+avx512f" not in context.codegen().magic_tuple()[2]:  # type: ignore[attr-defined]
                return context.make_tuple(builder, signature.return_type, [begin, whole(1), sum_before])  # type: ignore[no-untyped-call]
            vector, lanes = ir.VectorType(whole, width), ir.VectorType(lane, width)
            nothing, zeros = vector(ir.Undefined), vector([0] * width)
            shape = ir.FunctionType(vector, [vector, vector, ir.VectorType(ir.IntType(1), width)])
            compress = cgutils.get_or_insert_function(builder.module, shape, "llvm.x86.avx512.mask.compress.v8i64")  # type: ignore[no-untyped-call]

            def in_each(some: Value, place: int) -> Value:
                return builder.shuffle_vector(some, nothing, lanes([place] * width))

            def eight(array: int, index: Value) -> Value:
                view = context.make_array(signature.args[array])(context, builder, arguments[array])  # type: ignore[no-untyped-call]
                return builder.bitcast(builder.gep(view.data, [index]), vector.as_pointer())

            before = builder.block
            start = in_each(builder.insert_element(nothing, sum_before, lane(0)), 0)
            turn, body, done = (builder.append_basic_block() for _ in range(3))
            builder.branch(turn)
            builder.position_at_end(turn)
            value, place, base = builder.phi(whole), builder.phi(whole), builder.phi(vector)
            following = builder.add(value, whole(width))
            builder.cbranch(builder.icmp_signed("<=", following, end), body, done)
            builder.position_at_end(body)
            some = builder.load(eight(0, value), align=8)
            sums = some
            for step in (1, 2, 4):  # each the sum of twice as many
                lower = lanes([width + k - step if k >= step else 0 for k in range(width)])
                sums = builder.add(sums, builder.shuffle_vector(zeros, sums, lower))
            kept = builder.icmp_signed("!=", some, zeros)
            together = builder.call(compress, [builder.add(base, sums), nothing, kept])
            builder.store(together, eight(4, place), align=8)
            count = builder.zext(builder.ctpop(builder.bitcast(kept, ir.IntType(8))), whole)
            for phi, at_first, later in (
                (value, begin, following),
                (place, whole(1), builder.add(place, count)),
                (base, start, builder.add(base, in_each(sums, width - 1))),
            ):
                phi.add_incoming(at_first, before)
                phi.add_incoming(later, body)
            builder.branch(turn)
            builder.position_at_end(done)
            found = [value, place, builder.extract_element(base, lane(0))]
            return context.make_tuple(builder, signature.return_type, found)  # type: ignore[no-untyped-call]

        whole = types.int64
        found = types.UniTuple(whole, 3)  # type: ignore[no-untyped-call]
        return found(values, whole, whole, whole, listed), codegen

    @intrinsic
    def clear_where_above(
        typing_context: TypingContext,
        bits: types.Type,
        bits_row: types.Type,
        codes: types.Type,
        codes_row: types.Type,
        flip: types.Type,
        code: types.Type,
        mask: types.Type,
    ) -> Any:
        """Clear bits that are not in the mask where a code, with `flip` its bits turned, is above another.

        In uint8[*, 128]: bits[bits_row] by codes[codes_row].
        """

        def codegen(
            context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]
        ) -> Value:
            from llvmlite import ir

            byte, number = ir.IntType(8), ir.IntType(32)
            vector = ir.VectorType(byte, 128)

            def in_each_byte(value: Value) -> Value:
                single = builder.insert_element(vector(None), builder.trunc(value, byte), number(0))
                return builder.shuffle_vector(single, vector(None), ir.VectorType(number, 128)(None))

            def row(array: int) -> Value:
                view = context.make_array(signature.args[array])(context, builder, arguments[array])  # type: ignore[no-untyped-call]
                start = builder.mul(arguments[array + 1], ir.IntType(64)(128))
                return builder.bitcast(builder.gep(view.data, [start]), vector.as_pointer())

            own = row(0)
            before = builder.load(own, align=1)
            turned = builder.xor(builder.load(row(2), align=1), in_each_byte(arguments[4]))
            above = builder.icmp_unsigned(">", turned, in_each_byte(arguments[5]))
            cleared = builder.and_(before, in_each_byte(arguments[6]))
            builder.store(builder.select(above, cleared, before), own, align=1)
            return context.get_dummy_value()  # type: ignore[no-untyped-call]

        whole = types.uint64
        return types.void(bits, whole, codes, whole, whole, whole, whole), codegen
