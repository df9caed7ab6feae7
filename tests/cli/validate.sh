#!/bin/sh
# SPDX-License-Identifier: MIT
# embeng validate on the soft device: suites, seeds, rounds, TAP, JSON and Ctrl-C. Speaks TAP.
# usage: validate.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

expect 'quick' 0 validate -d soft --seed 17
says out 'a suite without meaning there says so' '^link  *all  *skipped  *not on a soft device$'
says out 'others pass' '^dma  *transfers  *skipped'
says out 'and count' '^11 passed, 0 failed, 19 skipped, 0 not run$'
says out 'the seed is printed' '^soft, seed 17, 1 round, '

expect 'as a document' 0 validate -d soft --seed 17 --json
document 'counts are those of the checks' '(lambda r: d["schema"] == "embeng.validate/1" and
	[r.count(k) for k in ("passed", "failed", "skipped", "not run")] ==
	[d["passed"], d["failed"], d["skipped"], d["not_run"]] == [11, 0, 19, 0])(
	[c["result"] for s in d["suites"] for c in s["checks"]])'
document 'a suite is what its checks are' '({s["name"]: s["result"] for s in d["suites"]} ==
	{"link": "skipped", "device": "passed", "interrupt": "skipped", "dma": "passed",
	 "memory": "passed", "fences": "skipped", "numeric": "passed"})'
document 'the device and the run' '(d["device"]["kind"] == "soft" and d["seed"] == 17 and
	d["rounds"] == 1 and not d["interrupted"] and d["stopped"] is None)'

expect 'no seed is given' 0 validate -d soft device --json
seed=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["seed"])' "$folder/out")
expect 'another one is drawn' 0 validate -d soft device --json
document 'each time' "d['seed'] != $seed"

# same_run SEED: the results of a run, without its times
same_run()
{
	"$embeng" validate -d soft numeric dma memory --mib 2 --seed "$1" --json |
		python3 -c 'import json, sys
d = json.load(sys.stdin)
print(d["seed"], [(c["name"], c["result"], c["message"]) for s in d["suites"] for c in s["checks"]])'
}
[ "$(same_run 5)" = "$(same_run 5)" ] && [ "$(same_run 5)" != "$(same_run 6)" ] &&
	report ok 'a seed gives the same run' || report no 'a seed gives the same run'

expect 'TAP' 0 validate -d soft --tap --loop 2 device numeric
cp "$folder/out" "$folder/tap"
python3 - "$folder/tap" >"$folder/out" 2>&1 <<'END' &&
import re, sys
lines = open(sys.argv[1]).read().splitlines()
tests = [re.fullmatch(r"ok (\d+) - (\w+: \w+)( # SKIP .+)?", x) for x in lines[2:-1]]
sys.exit(lines[0] != "TAP version 14" or not lines[1].startswith("# device soft, seed ") or
         lines[-1] != f"1..{len(tests)}" or None in tests or
         [int(t[1]) for t in tests] != list(range(1, 15)) or
         [t[2] for t in tests].count("numeric: reference") != 2 or
         sum(bool(t[3]) for t in tests) != 4)
END
	report ok 'is valid, a line for each check and round' ||
	report no 'is valid, a line for each check and round'

expect 'rounds' 0 validate -d soft --loop 3 numeric --json
document 'are counted' '(d["rounds"] == 3 and all(c["passed_rounds"] == 3 and c["round"] == 3
	for c in d["suites"][0]["checks"]))'
expect 'a time' 0 validate -d soft --time 1 device --json
document 'is filled with rounds' 'd["rounds"] > 3 and 1 <= d["seconds"] < 30'

# signalled PARAMETER...: SIGINT after a second; the exit status as the shell has it
signalled()
{
	python3 - "$embeng" "$@" >"$folder/out" 2>"$folder/err" <<'END'
import signal, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "validate", "-d", "soft", *sys.argv[2:]])
time.sleep(1)
p.send_signal(signal.SIGINT)
began = time.monotonic()
sys.exit(not (p.wait(60) == -signal.SIGINT and time.monotonic() - began < 30))
END
	[ $? -eq 0 ] && report ok "Ctrl-C ends it: $*" || report no "Ctrl-C ends it: $*"
}
signalled memory --mib 256 --loop forever --json
document 'with what was done until then' '(d["interrupted"] and d["stopped"] == "interrupted" and
	d["failed"] == 0 and d["rounds"] >= 1 and len(d["suites"]) == 1)'
signalled device memory --mib 256 --tap
says out 'what had run has passed' '^ok 4 - device: lookups$'
says out 'what had not is not run' '^ok [0-9]* - memory: .* # SKIP not run: interrupted$'
says out 'and the plan is whole' '^1\.\.8$'

expect 'a list' 0 validate --list
says out 'has sets' '^quick  *[0-9.]* m*s  *[0-9.]* m*s  '
says out 'suites' '^numeric  *[0-9.]* m*s  *[0-9.]* m*s  lookups and training'
says out 'and checks' '^  march  *words keep their bits'
expect 'a list as a document' 0 validate --list --json
document 'says what needs what' '({s["name"]: s["needs"] for s in d["suites"]}["memory"] == ["dma"] and
	[s["name"] for s in d["suites"] if s["disturbs"]] == ["reset"] and
	[s["name"] for s in d["sets"]] == ["quick", "full", "soak"] and
	all(s["emulator_ms"] > 0 for s in d["suites"]))'

expect 'no such suite' 2 validate nonsense
says err 'the way out is told' "no suite 'nonsense'; --list shows all"
expect 'a reset is not made unasked' 2 validate -d soft reset
says err 'but with consent' '--allow-reset'
expect 'TAP in a document' 2 validate -d soft --tap --json device
document 'is refused' '"--tap and --json" in d["error"]["message"]'
expect 'no rounds' 2 validate -d soft --loop 0
expect 'no time' 2 validate -d soft --time -1
expect 'no seed' 2 validate -d soft --seed x
expect 'no such device' 6 validate -d /dev/accel/accel63

finish
