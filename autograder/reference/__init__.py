"""The answers, in torch, on CPU or GPU: one module a subject."""
