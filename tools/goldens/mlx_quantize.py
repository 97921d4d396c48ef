#!/usr/bin/env python3
"""Writes tests/model/golden/mlx_quantize.safetensors: what mx.quantize makes of one bf16 matrix, at all bits and group sizes.

    pip install 'mlx[cpu]'  # or mlx on a Mac
    tools/goldens/mlx_quantize.py
"""
import importlib.metadata
import pathlib

import mlx.core as mx

ROWS, COLS = 7, 128


def matrix():
    """Random rows, then groups that take the special paths of the quantiser."""
    mx.random.seed(1)
    w = mx.random.normal((ROWS, COLS)) * 0.02
    w[1] = mx.abs(w[1])  # one sign
    w[2] = -mx.abs(w[2])
    w[3, :64] = 0  # constant groups, zero and not
    w[3, 64:] = 0.75
    w[4] = w[4] * 1e-6  # below the smallest step
    w[5, ::17] = w[5, ::17] * 100  # outliers
    w[6] = mx.round(w[6] * 64) / 64  # ties
    return w.astype(mx.bfloat16)


def main():
    w = matrix()
    tensors = {"w": w}
    for bits in (2, 3, 4, 5, 6, 8):
        for group_size in (32, 64, 128):
            name = f"{bits}bit.group{group_size}"
            for part, value in zip(("weight", "scales", "biases"), mx.quantize(w, group_size, bits)):
                tensors[f"{name}.{part}"] = value
            tensors[f"{name}.dequantized"] = mx.dequantize(*mx.quantize(w, group_size, bits), group_size, bits)
    root = pathlib.Path(__file__).resolve().parents[2]
    path = root / "tests" / "model" / "golden" / "mlx_quantize.safetensors"
    metadata = {"made_by": "tools/goldens/mlx_quantize.py", "mlx": importlib.metadata.version("mlx")}
    mx.save_safetensors(str(path), tensors, metadata)
    print(path, path.stat().st_size, "bytes")


main()
