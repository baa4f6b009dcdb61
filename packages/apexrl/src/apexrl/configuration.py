"""Configuration: frozen, validated dataclasses, read from defaults < YAML file < command-line flags.

A configuration class is declared once and serves the library, the YAML file and the command line::

    @configuration
    class DemoConfig:
        '''Train a small agent.'''

        seed: int = 0
        '''Seed of everything random.'''

The docstring under a field becomes its help text; an unknown key or a value that breaks a rule is refused with a
message that names the value, the rule and a hint.
"""

import contextlib
import dataclasses
import difflib
import functools
import inspect
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, dataclass_transform, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from apexrl.runs.errors import ConfigurationError, ReadFailedError
from apexrl.runs.reading import YAML_LIMIT, parse_yaml, read_bytes

T = TypeVar("T")

_STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def configuration(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen, keyword-only dataclass that validates its fields and refuses unknown ones.

    What it refuses is a :class:`ConfigurationError` that names the field, its value and the nearest field there is.
    A configuration may inherit from another: it has the fields of both, its own first on help pages and in files.
    """
    own = inspect.get_annotations(cls)
    made: Any = pydantic_dataclass(frozen=True, kw_only=True, config=_STRICT)(cls)
    validate = made.__init__

    @functools.wraps(validate)
    def in_words(self: T, *args: Any, **values: Any) -> None:  # noqa: ANN401 - of any fields
        try:
            validate(self, *args, **values)
        except ValidationError as error:
            raise _refusal(error.errors(), type(self).__name__, type(self)) from error

    made.__init__ = in_words
    fields = cast("dict[str, Any]", made.__dataclass_fields__)
    inherited = [name for name in fields if name not in own]
    for name in inherited:  # dataclasses list them first
        fields[name] = fields.pop(name)
    return cast("type[T]", made)


_COMMAND_LINE = "the command line"


def _refusal(errors: Sequence[Mapping[str, Any]], source: str, cls: type) -> ConfigurationError:
    """Turn validation errors into one that names each key, its value, the rule it breaks and a hint."""
    problems = []
    for item in errors:
        parts, text = item["loc"], item["msg"].removeprefix("Value error, ").replace("Input should", "it should")
        if source == _COMMAND_LINE:  # a flag has no name for each of its values
            key = _flag(".".join(part for part in parts if isinstance(part, str)))
        else:
            key = ".".join(map(str, parts))
        if item["type"] in {"unexpected_keyword_argument", "extra_forbidden"}:
            problems.append(f"{key}: unknown key{_suggestion(cls, item['loc'])}")
        elif item["loc"]:
            problems.append(f"{key}: got {item['input']!r}; {text}")
        else:  # a rule over several fields names their values in its own message
            problems.append(text)
    rule = f"It breaks a rule: {'; '.join(problems)}"
    return ConfigurationError(f"{source} is not acceptable", rule, "Correct the entry or remove it")


def _suggestion(cls: type, location: tuple[int | str, ...]) -> str:
    """Return what may have been meant by an unknown key: the nearest name, or all of them."""
    if len(location) != 1 or not dataclasses.is_dataclass(cls):
        return ""
    names = [field.name for field in dataclasses.fields(cls)]
    near = difflib.get_close_matches(str(location[0]), names, n=1)
    return f", perhaps {near[0]} was meant" if near else f"; known are {', '.join(names)}"


def from_mapping(cls: type[T], values: Mapping[str, Any], source: str = "the configuration") -> T:
    """Build ``cls`` from plain values.

    Args:
        cls: A class declared with :func:`configuration`.
        values: Field names and values, nested for nested configurations.
        source: What to call the origin of the values in an error message.

    Raises:
        ConfigurationError: A key is unknown or a value breaks a rule.
    """
    try:
        return TypeAdapter(cls).validate_python(dict(values))
    except ValidationError as error:
        raise _refusal(error.errors(), source, cls) from error


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        ConfigurationError: The file is missing, unreadable, not YAML or not a mapping.
    """
    name = f"configuration file {str(path)!r}"
    rule, hint = "It must be a YAML mapping of option names to values", "Correct the file or name another one"
    if path.is_dir():
        raise ConfigurationError(f"{str(path)!r} is a folder, not a configuration file", hint="Name a YAML file")
    try:
        text = read_bytes(path, YAML_LIMIT)
    except FileNotFoundError as error:
        raise ConfigurationError(f"there is no {name}", hint="Correct the path") from error
    except ReadFailedError as error:
        raise ConfigurationError(error.got, error.expected, error.hint) from error
    try:
        values = parse_yaml(text.decode())
    except ReadFailedError as error:
        raise ConfigurationError(f"{name} is not valid YAML: {error.__cause__}", rule, hint) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name} is not valid YAML: {error}", rule, hint) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigurationError(f"{name} holds a {type(values).__name__}", rule, hint)
    return values


def from_command_line(cls: type[T], arguments: Sequence[str], program: str) -> T:
    """Build ``cls`` from defaults, then the file after ``--config``, then flags.

    The file may leave out required options that flags give. A positional argument may be named like an option:
    ``--path FILE`` stands for ``FILE``.

    Args:
        cls: A class declared with :func:`configuration`; its docstring heads the help page. If it has a field
            ``config``, ``--config`` means that field.
        arguments: The command line without the program's name.
        program: How the help page calls the command.

    Raises:
        ConfigurationError: The file or a value is not acceptable. Unknown flags exit with status 2, as usual.
    """
    import tyro  # only commands need it, and it is slow to import

    description = inspect.cleandoc(cls.__doc__ or "")
    flags, path = list(arguments), None
    if "config" not in inspect.signature(cls).parameters:
        given, flags = _split_off(flags, {"config": "FILE.yaml"})
        path = given.get("config")
        description += "\n\nOptions come from defaults, then --config FILE.yaml, then flags."
    flags = _without_names(cls, flags)
    default = _defaults_of_file(cls, Path(path)) if path else None
    keywords: dict[str, Any] = {} if default is None else {"default": default}

    def parse(*, shows: bool) -> T:
        parsed: T = tyro.cli(cls, args=flags, prog=program, description=description, console_outputs=shows, **keywords)
        return parsed

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # a value that breaks a rule is printed in spite of `shows`
            return parse(shows=False)
    except SystemExit as leaving:  # help was asked for, or something is wrong
        error = _validation_error(leaving)
    if error is not None:
        raise _refusal(error.errors(), _COMMAND_LINE, cls) from error
    return parse(shows=True)  # print the help or the message, and leave


def _validation_error(error: BaseException) -> ValidationError | None:
    """Return the validation error that tyro turned into a message of its own, if there was one."""
    chain: BaseException | None = error
    while chain is not None and not isinstance(chain, ValidationError):
        chain = chain.__cause__ or chain.__context__
    return chain


def _defaults_of_file(cls: type[T], path: Path) -> T:
    """Return ``cls`` with the values of a file; required fields that it leaves out are MISSING, for flags to give.

    Rules over several fields are then checked together with the flags.
    """
    from tyro import MISSING

    values, source = read_yaml(path), f"configuration file {str(path)!r}"
    try:
        return TypeAdapter(cls).validate_python(values)
    except ValidationError as error:
        wrong = [item for item in error.errors() if item["type"] != "missing" or len(item["loc"]) > 1]
        if wrong:
            raise _refusal(wrong, source, cls) from error
    default = object.__new__(cls)  # its constructor would refuse MISSING
    types = get_type_hints(cls, include_extras=True)
    for name, field in cast("Any", cls).__pydantic_fields__.items():
        if name in values:
            value = TypeAdapter(types[name]).validate_python(values[name])
        else:
            value = MISSING if field.is_required() else field.get_default(call_default_factory=True)
        object.__setattr__(default, name, value)
    return default


def _without_names(cls: type, arguments: Sequence[str]) -> list[str]:
    """Put the positional arguments that are named, as in ``--path FILE``, in front and without their names."""
    from tyro.conf import Positional

    fields = cast("Any", cls).__pydantic_fields__
    positionals = [field.name for field in dataclasses.fields(cls) if Positional in fields[field.name].metadata]
    named, rest = _split_off(arguments, {name: name.upper() for name in positionals})
    unnamed = next((name for name in positionals if name not in named), None)
    for name in positionals[len(named) :]:
        if name in named:
            raise ConfigurationError(
                f"{_flag(name)} {named[name]} is named and {unnamed}, which comes before it, is not",
                "positional arguments are named from the first one on",
                f"name {_flag(str(unnamed))} too, or give all of them without names",
            )
    return [*(named[name] for name in positionals if name in named), *rest]


def _split_off(arguments: Sequence[str], placeholders: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Take ``--name VALUE`` or ``--name=VALUE`` out of the arguments.

    Args:
        arguments: The command line.
        placeholders: Names of the options to take, with what stands for their value in a message.

    Returns:
        The values by name, and the other arguments.

    Raises:
        ConfigurationError: An option is the last word, so that it has no value.
    """
    values: dict[str, str] = {}
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        flag, separator, value = argument.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in placeholders:
            rest.append(argument)
            continue
        following = value if separator else next(waiting, None)
        if following is None:
            text = f"{flag} {placeholders[name]}"
            raise ConfigurationError(f"{flag} has no value", "an option is followed by its value", f"write {text}")
        values[name] = following
    return values, rest


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def of_class(config_class: type[T], cfg: T | None, owner: str) -> T:
    """Return a configuration if it is of a class exactly; None is the default.

    Args:
        config_class: The class.
        cfg: What was given.
        owner: Whose configuration it is, for the message.

    Raises:
        ConfigurationError: It is of another class, whose fields the owner does not read.
    """
    if cfg is None:
        return config_class()
    if type(cfg) is not config_class:
        raise ConfigurationError(
            f"cfg is a {type(cfg).__name__}",
            f"{owner} takes a {config_class.__name__}, and nothing of another class would be read",
            f"write cfg={config_class.__name__}(…)",
        )
    return cfg


def to_mapping(config: Any) -> dict[str, Any]:  # noqa: ANN401 - any configuration class
    """Return the plain values of a configuration, ready for YAML or JSON; the inverse of :func:`from_mapping`."""
    values = TypeAdapter(type(config)).dump_python(config, mode="json")
    if not isinstance(values, dict):
        raise TypeError(f"{type(config).__name__} is not a configuration class; declare it with @configuration")
    return {field.name: values[field.name] for field in dataclasses.fields(config)}
