"""Export of trained policies: TorchScript for any actor, ``.npz`` for plain MLPs."""
