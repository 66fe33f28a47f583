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

from lmart.array_types import UInt8Array

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
