"""The settings as options of a command, and in its help: section by section, from the table."""

from __future__ import annotations

from typing import Any, Final

import click

from tenure.cli.settings.table import SECTIONS, TABLE, Setting

WIDTH: Final = 100
#: Options that may stand alone, and what may follow them.
_SWITCHES: Final = {f"--{setting.flag}" for setting in TABLE if setting.form.is_switch}
_VALUES: Final = ("true", "false")


class CommandWithArguments(click.Command):
    """A switch takes the next word only where that is true or false: else it is an argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        following = [*args, ""][1:]
        words = [
            f"{word}=true" if word in _SWITCHES and after.lower() not in _VALUES else word
            for word, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, words)


class SettingsCommand(click.Command):
    """A command with every setting as an option, and a help that is told in sections."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [_option(setting) for setting in TABLE]

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        # As wide as asked for, whatever the terminal: it is read in pagers and in files, too.
        return super().make_context(*args, **{"terminal_width": WIDTH, **kwargs})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        of_settings = {param.name: param for param in self.params if param.name in _BY_NAME}
        others = [param for param in self.params if param.name not in of_settings]
        records = [param.get_help_record(ctx) for param in others + _help_option(self, ctx)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])
        for section in SECTIONS:
            with formatter.section(section):
                formatter.write_dl([_entry(s) for s in TABLE if s.section == section], col_max=34)


def parameter_name(setting: Setting) -> str:
    """What click calls the option."""
    return setting.flag.replace("-", "_")


_BY_NAME: Final = {parameter_name(setting): setting for setting in TABLE}


def _option(setting: Setting) -> click.Option:
    """Text, always: the one place that evaluates values is ``cli.config``."""
    names = [f"--{flag}" for flag in (setting.flag, *setting.also)]
    return click.Option([*names, parameter_name(setting)], **option_arguments(setting))


def option_arguments(setting: Setting) -> dict[str, Any]:
    """For click: a switch may stand alone, and a shell completes names of files."""
    switch = {"is_flag": False, "flag_value": "true"} if setting.form.is_switch else {}
    file = {"type": click.Path()} if setting.form.metavar == "FILE" else {}
    return {"metavar": setting.form.metavar, **switch, **file}


def _entry(setting: Setting) -> tuple[str, str]:
    said = f"{setting.reason} [default: {setting.default_words}; {setting.environment}]"
    return f"--{setting.flag} {setting.form.metavar}", said


def _help_option(command: click.Command, ctx: click.Context) -> list[click.Parameter]:
    option = command.get_help_option(ctx)
    return [option] if option is not None else []
