"""Each connection is an open file, and the limit of open files is often low."""

import resource

import pytest

from bpac.gateway.server import allow_open_files

ALL = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limits", "wanted", "asked"),
    [
        ((1024, 4096), 2000, (2000, 4096)),
        ((1024, 4096), 9000, (4096, 4096)),
        ((4096, 4096), 2000, None),
        ((1024, ALL), 9000, (9000, ALL)),
        ((ALL, ALL), 9000, None),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_allowed(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limits: tuple[int, int],
    wanted: int,
    asked: tuple[int, int] | None,
) -> None:
    """It is never lowered; if it cannot be raised far enough, the log says what to do."""
    changes: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: changes.append(new))
    allow_open_files(wanted)
    assert changes == ([] if asked is None else [asked])
    assert bool(caplog.records) is (asked == (4096, 4096))
