"""Configurations of a kube-scheduler, and what is explained by them."""

from collections.abc import Sequence
from typing import Any

import yaml

from app.explain.scheduler_profiles import SchedulerProfiles
from app.scheduler_configuration.scheduler_config import SchedulerConfig, parse_scheduler_config
from app.scheduler_configuration.schema import API_VERSION, KIND
from app.settings.settings import Settings
from core.diagnosis.explained_profile import every_rule
from core.profile import Profile
from tests.core.profile_parts import affinity_profile

NO_SETTINGS = Settings()


def configured(profile: dict[str, Any], **members: Any) -> dict[str, Any]:  # noqa: ANN401  # any YAML
    """Return a configuration with one profile."""
    return {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile], **members}


def with_args(plugin: str, **args: Any) -> dict[str, Any]:  # noqa: ANN401  # any YAML
    """Return a configuration whose profile has arguments of a plugin."""
    return configured({"pluginConfig": [{"name": plugin, "args": args}]})


def config_of(document: dict[str, Any]) -> SchedulerConfig:
    """Return a configuration as it is read."""
    return parse_scheduler_config(yaml.safe_dump(document))


def scheduler_profiles(
    document: dict[str, Any], served: Profile | None = None, settings: Settings = NO_SETTINGS
) -> SchedulerProfiles:
    """Return the profiles of a configuration, beside a Kindred that serves `affinity` or another profile."""
    return SchedulerProfiles(config_of(document), settings, every_rule(served or affinity_profile()))


def names(items: Sequence[Any]) -> list[str]:
    """Return what the items are called."""
    return [each.plugin for each in items]
