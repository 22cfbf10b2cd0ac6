"""flash_attn's functions on the CPU, of the package multihead, for programs that load kernels by name."""

from multihead.torch.flash import flash_attn_func, flash_attn_varlen_func

__all__ = ["flash_attn_func", "flash_attn_varlen_func"]
