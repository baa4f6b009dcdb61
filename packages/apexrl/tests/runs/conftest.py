import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from apexrl.runs.checkpoints.checkpoint import Checkpoint, Schema, save_checkpoint


@pytest.fixture
def file_size_limit() -> Callable[[int], AbstractContextManager[None]]:
    """No file may grow past so many bytes: what the operating system does on a full disk, without root."""
    import resource

    @contextmanager
    def limit(size: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limit


@pytest.fixture
def global_rng() -> Iterator[None]:
    """Leave the global random streams as they were found."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema(name="tests.demo", version=2)


@pytest.fixture(scope="session")
def sealed_bytes(tmp_path_factory: pytest.TempPathFactory, schema: Schema) -> bytes:
    """The content of a small sound checkpoint file."""
    path: Path = tmp_path_factory.mktemp("sealed") / "model.pt"
    save_checkpoint(path, Checkpoint(schema=schema, step=3, state={"w": torch.arange(4.0)}))
    return path.read_bytes()
