"""Whether processes that a test has started, or that those have started, still run."""

import psutil  # type: ignore[import-untyped]


def has_ended(pid: int) -> bool:
    """Whether a process has ended; in a container whose first process reaps no orphans, they stay as zombies."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
