"""Health of the models behind the gateway: whether each one answers, and since when."""

from bpac.gateway.health.model_health import ModelHealth

__all__ = ["ModelHealth"]
