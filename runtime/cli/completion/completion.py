#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes completions for bash, zsh and fish from the tables of the command.

usage: completion.py EMBENG FOLDER

EMBENG is asked for its verbs, for the commands of a verb, and for the options of each: with
--list-cmds and --list-options it prints the tables that it parses by. Nothing else is known here
but what an argument's name says about its value, so a new verb is completed without a change.
"""
import os
import re
import subprocess
import sys
from typing import NamedTuple

DEVICES = {"DEVICE"}
FILES = {"FILE", "MODEL", "SOURCE", "IMAGE", "CERT", "KEY", "PATH", "OUT"}
FOLDERS = {"DIR", "IN", "OLD"}
# The words before --list-names, which prints all names of the kind.
NAMED = {"REGISTER": "regs", "FAULT": "fault list", "FORMAT": "decode"}
ALTERNATIVES = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")
MADE = "Made from the tables of the command by completion.py."


class Option(NamedTuple):
    long: str
    short: str
    value: str  # what its value is; empty: it has none
    words: str

    def names(self):
        return [f"-{self.short}"] * bool(self.short) + [f"--{self.long}"]


class Scope(NamedTuple):
    """A verb, or a command of one."""
    name: str
    words: str
    arguments: str
    options: list
    commands: list  # scopes; a verb that has some takes no options of its own


def kind(value):
    """What to offer: device, file, folder, some words, names by a call of embeng, or nothing."""
    if ALTERNATIVES.fullmatch(value):
        return "words " + value.replace("|", " ")
    names = set(re.findall(r"[A-Z]+", value))
    for name in sorted(names & NAMED.keys()):
        return "names " + NAMED[name]
    for offered, known in (("device", DEVICES), ("file", FILES), ("folder", FOLDERS)):
        if names & known:
            return offered
    return "nothing"


def ask(embeng, *arguments):
    return subprocess.run([embeng, *arguments], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8").stdout.splitlines()


def read_scope(embeng, path, words):
    """A verb or command without commands: its arguments, and an option a line."""
    arguments, *lines = ask(embeng, *path, "--list-options")
    options = [Option(*line.split("\t")) for line in lines]
    return Scope(path[-1], words, arguments, options, [])


def read_commands(embeng, verb):
    """The commands of a verb and their summaries; none where the verb is not a group."""
    done = subprocess.run([embeng, verb, "--list-cmds"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, encoding="utf-8", check=False)
    return [] if done.returncode else [line.split("\t") for line in done.stdout.splitlines()]


def read_verbs(embeng):
    known = ask(embeng, "--list-cmds")
    help_lines = [line.split(None, 1) for line in ask(embeng, "--help") if line.startswith("  ")]
    summaries = {words[0]: words[1] for words in help_lines if len(words) == 2}
    verbs = []
    for verb in known:
        commands = [read_scope(embeng, [verb, name], words)
                    for name, words in read_commands(embeng, verb)]
        if commands:
            verbs.append(Scope(verb, summaries[verb], "", [], commands))
        else:
            verbs.append(read_scope(embeng, [verb], summaries[verb]))
    return verbs


def leaves(verbs):
    """Pairs of a path, such as "checkpoint ls", and its scope."""
    for verb in verbs:
        if verb.commands:
            yield from ((f"{verb.name} {command.name}", command) for command in verb.commands)
        else:
            yield verb.name, verb


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


# -- bash --

BASH = r"""# SPDX-License-Identifier: MIT
# bash completion of embeng. {made}

_embeng_devices()
{{
	embeng list --json 2>/dev/null | sed -n 's/^ *"name": *"\(.*\)",\{{0,1\}}$/\1/p'
}}

# What a call takes: words of each kind, by "verb command"
_embeng_table()
{{
	case $1 in
	commands)
		case $2 in
{commands}
		esac ;;
	options)
		case $2 in
{options}
		esac ;;
	value)
		case $2 in
{values}
		esac ;;
	argument)
		case $2 in
{arguments}
		esac ;;
	esac
}}

# _embeng_offer WORD KIND...: sets COMPREPLY
_embeng_offer()
{{
	local word=$1
	case $2 in
	device) mapfile -t COMPREPLY < <(compgen -W "$(_embeng_devices)" -- "$word") ;;
	file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	words) shift 2; mapfile -t COMPREPLY < <(compgen -W "$*" -- "$word") ;;
	names)
		shift 2
		mapfile -t COMPREPLY < <(compgen -W "$(embeng "$@" --list-names 2>/dev/null)" -- "$word") ;;
	esac
}}

_embeng()
{{
	# Words are parted here as ever, whatever the user has chosen for the shell.
	local IFS=$' \t\n'
	# Names of devices have colons and equal signs, at which bash breaks words.
	local line=${{COMP_LINE:0:COMP_POINT}} word words scope before
	word=${{line##*[[:space:]]}}
	read -r -a words <<<"${{line%"$word"}}"
	COMPREPLY=()
	before=${{words[-1]}} scope=${{words[1]-}}
	local commands
	commands=$(_embeng_table commands "$scope")
	if [[ -n $commands && ${{#words[@]}} -gt 2 ]]; then
		scope="$scope ${{words[2]}}"
		commands=
	fi
	if [[ ${{#words[@]}} -eq 1 ]]; then
		_embeng_offer "$word" words '{verbs} --help --version --list-cmds'
	elif [[ -n $commands ]]; then
		_embeng_offer "$word" words "$commands --help"
	elif [[ -n $(_embeng_table value "$scope $before") ]]; then
		# shellcheck disable=SC2046
		_embeng_offer "$word" $(_embeng_table value "$scope $before")
	elif [[ $word == --*=* ]]; then
		# shellcheck disable=SC2046
		_embeng_offer "${{word#*=}}" $(_embeng_table value "$scope ${{word%%=*}}")
		COMPREPLY=("${{COMPREPLY[@]/#/"${{word%%=*}}="}}")
	elif [[ $word == -* ]]; then
		_embeng_offer "$word" words "$(_embeng_table options "$scope")"
	else
		# shellcheck disable=SC2046
		_embeng_offer "$word" $(_embeng_table argument "$scope")
	fi
	if [[ $word == *[:=]* && $COMP_WORDBREAKS == *[:=]* ]]; then
		local broken=${{word%"${{word##*[:=]}}"}}
		COMPREPLY=("${{COMPREPLY[@]#"$broken"}}")
	fi
}}

complete -F _embeng embeng
"""


def bash(verbs):
    def arm(names, words):
        return f"\t\t{'|'.join(quoted(name) for name in names)}) echo {quoted(words)} ;;"

    commands = [arm([verb.name], " ".join(command.name for command in verb.commands))
                for verb in verbs if verb.commands]
    options, values, arguments = [], [], []
    for path, scope in leaves(verbs):
        options.append(arm([path], " ".join(name for option in scope.options
                                            for name in option.names())))
        values += [arm([f"{path} {name}" for name in option.names()], kind(option.value))
                   for option in scope.options if option.value]
        if scope.arguments:
            arguments.append(arm([path], kind(scope.arguments)))
    return BASH.format(made=MADE, verbs=" ".join(verb.name for verb in verbs),
                       **{name: "\n".join(lines) for name, lines in (
                           ("commands", commands), ("options", options), ("values", values),
                           ("arguments", arguments))})


# -- zsh --

ZSH = r"""#compdef embeng
# SPDX-License-Identifier: MIT
# zsh completion of embeng. {made}

_embeng_devices()
{{
	local -a names
	names=(${{(f)"$(embeng list --json 2>/dev/null |
		sed -n 's/^ *"name": *"\(.*\)",\{{0,1\}}$/\1/p')"}})
	compadd -a names
}}

# _embeng_names VERB [COMMAND]: what it prints with --list-names
_embeng_names()
{{
	local -a names
	names=(${{(f)"$(embeng "$@" --list-names 2>/dev/null)"}})
	compadd -a names
}}

_embeng()
{{
	local -a known
	if (( CURRENT == 2 )); then
		known=({verbs})
		_describe -t verbs verb known
		compadd -- --help --version --list-cmds
		return
	fi
	shift words
	(( CURRENT-- ))
	case $words[1] in
{groups}
	esac
	case ${{scope-}}$words[1] in
{scopes}
	esac
}}

_embeng "$@"
"""

ZSH_GROUP = r"""	{name})
		if (( CURRENT == 2 )); then
			known=({commands})
			_describe -t commands command known
			return
		fi
		local scope='{name} '
		shift words
		(( CURRENT-- )) ;;"""


def zsh_action(value):
    offered = kind(value)
    if offered.startswith("words "):
        return f"({offered[6:]})"
    if offered.startswith("names "):
        return "{_embeng_names " + offered[6:] + "}"
    return {"device": "_embeng_devices", "file": "_files", "folder": "_files -/", "nothing": " "}[offered]


def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def zsh_option(option):
    value = f":{zsh_text(option.value)}:{zsh_action(option.value)}" if option.value else ""
    return [quoted(f"*{name}{'=' if option.value and name[1] == '-' else ''}"
                   f"[{zsh_text(option.words)}]{value}") for name in option.names()]


def zsh_scope(path, scope):
    specs = [spec for option in scope.options for spec in zsh_option(option)]
    if scope.arguments:
        specs.append(quoted(f"*:{zsh_text(scope.arguments)}:{zsh_action(scope.arguments)}"))
    return f"\t{quoted(path)})\n\t\t_arguments -s \\\n\t\t\t" + " \\\n\t\t\t".join(specs) + " ;;"


def zsh(verbs):
    def listed(scopes):
        return " ".join(quoted(f"{scope.name}:{zsh_text(scope.words)}") for scope in scopes)

    return ZSH.format(made=MADE, verbs=listed(verbs),
                      groups="\n".join(ZSH_GROUP.format(name=verb.name,
                                                        commands=listed(verb.commands))
                                       for verb in verbs if verb.commands),
                      scopes="\n".join(zsh_scope(path, scope) for path, scope in leaves(verbs)))


# -- fish --

FISH = r"""# SPDX-License-Identifier: MIT
# fish completion of embeng. {made}

function __embeng_devices
	embeng list --json 2>/dev/null | string match -r '^ *"name": *"(.*)",?$' -g
end

# True if the words before the cursor name this verb, or this verb and command.
function __embeng_in
	set -l tokens (commandline -opc)
	set -l last (math 1 + (count $argv))
	test (count $tokens) -ge $last; and test "$tokens[2..$last]" = "$argv"
end

# True if the verb is the last word, and its command comes next.
function __embeng_after
	set -l tokens (commandline -opc)
	test (count $tokens) -eq (math 1 + (count $argv)); and test "$tokens[2..]" = "$argv"
end

function __embeng_first
	test (count (commandline -opc)) -eq 1
end

complete -c embeng -f
complete -c embeng -n __embeng_first -l help -d 'Show the verbs and exit'
complete -c embeng -n __embeng_first -l version -d 'Show the version and exit'
complete -c embeng -n __embeng_first -l list-cmds -d 'List the verbs, one per line'
{lines}
"""


def fish_value(value):
    offered = kind(value)
    if offered.startswith("words "):
        return f" -a {quoted(offered[6:])}"
    if offered.startswith("names "):
        return f" -a '(embeng {offered[6:]} --list-names 2>/dev/null)'"
    return {"device": " -a '(__embeng_devices)'", "file": " -F",
            "folder": " -a '(__fish_complete_directories)'", "nothing": ""}[offered]


def fish(verbs):
    lines = [f"complete -c embeng -n __embeng_first -a {verb.name} -d {quoted(verb.words)}"
             for verb in verbs]
    lines += [f"complete -c embeng -n '__embeng_after {verb.name}' -a {command.name}"
              f" -d {quoted(command.words)}" for verb in verbs for command in verb.commands]
    for path, scope in leaves(verbs):
        start = f"complete -c embeng -n '__embeng_in {path}'"
        for option in scope.options:
            short = f" -s {option.short}" * bool(option.short)
            value = ""
            if option.value:  # fish offers files for every value of -r, and none for one of -x
                needs = " -r" if kind(option.value) == "file" else " -x"
                value = needs + fish_value(option.value)
            lines.append(f"{start}{short} -l {option.long}{value} -d {quoted(option.words)}")
        if scope.arguments and fish_value(scope.arguments):
            lines.append(start + fish_value(scope.arguments))
    return FISH.format(made=MADE, lines="\n".join(lines))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    verbs = read_verbs(os.path.abspath(sys.argv[1]))
    for name, text in (("embeng.bash", bash(verbs)), ("_embeng", zsh(verbs)),
                       ("embeng.fish", fish(verbs))):
        with open(os.path.join(sys.argv[2], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
