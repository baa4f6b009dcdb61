"""Export of trained policies: ONNX for any actor, ``.npz`` for plain MLPs.

``NumpyPolicy`` plays an ``.npz`` export with numpy alone; importing it loads no torch.
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.export.numpy_policy import NumpyPolicy
    from apexrl.export.policy import ExportError, export_npz, export_onnx
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "apexrl.export.numpy_policy": ("NumpyPolicy",),
            "apexrl.export.policy": (
                "ExportError",
                "export_npz",
                "export_onnx",
            ),
        },
    )

__all__ = [
    "ExportError",
    "NumpyPolicy",
    "export_npz",
    "export_onnx",
]
