"""The environment checker: finds mistakes that training shows only as a policy that does not learn."""

from apexrl.envs.checker.check import CheckReport, EnvCheckError, Problem, check_env

__all__ = ["CheckReport", "EnvCheckError", "Problem", "check_env"]
