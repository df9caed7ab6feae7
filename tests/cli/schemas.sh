#!/bin/sh
# SPDX-License-Identifier: MIT
# Each verb's document has a schema, and keeps to it in an ordinary case and in failing ones. The
# other scripts hold the same of every document that they ask for: see finish() in checks.sh.
# Speaks TAP.
# usage: schemas.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

root=$(cd "$scripts/../.." && pwd) || exit 1
golden=$root/tests/golden/checkpoint
verbs=$("$embeng" --list-cmds)

# Verbs whose ordinary document takes a device behind the driver, for which tests/vm asks, or a machine.
driver_only='fault reset vm'

python_with jsonschema "$scripts/schemas.py" --table $verbs >"$folder/out" 2>"$folder/err" &&
	report ok 'each verb has a schema, and none is open' ||
	report no 'each verb has a schema, and none is open'
for schema in "$root"/docs/schemas/*.json; do
	grep -q "'schemas/${schema##*/}'" "$root/docs/meson.build" || echo "${schema##*/} is not installed"
done >"$folder/out" 2>"$folder/err"
[ ! -s "$folder/out" ] && report ok 'each schema is installed' || report no 'each schema is installed'

for script in "$scripts"/*.sh; do
	grep -q '^\. .*/checks\.sh"$' "$script" && ! grep -qx finish "$script" &&
		echo "${script##*/} does not end with finish, so its documents are not validated"
done >"$folder/out" 2>"$folder/err"
[ ! -s "$folder/out" ] && report ok 'each script validates its documents' ||
	report no 'each script validates its documents'

# ordinary ARGUMENT...: a call that succeeds
ordinary()
{
	expect "embeng $1" 0 "$@" --json
}

mkdir "$folder/empty"
cat >"$folder/model.json" <<'END'
{"tables": [{"name": "t", "vocabulary_size": 4, "dim": 2, "optimizer": {"kind": "adam"}}],
 "features": [{"name": "f", "table": "t"}]}
END
for i in $(seq 40); do
	echo "w$((i % 6)) w$(((i + 1) % 6)) w$(((i + 2) % 6))"
done >"$folder/baskets.txt"
# Packages in ten groups: each depends on six others of its group.
awk 'BEGIN { for (g = 0; g < 10; g++) for (p = 0; p < 12; p++) {
	printf "Package: g%d-%d\nDepends: ", g, p
	for (k = 1; k <= 6; k++) printf "%sg%d-%d", (k > 1 ? ", " : ""), g, (p + k) % 12
	print "\n"
} }' >"$folder/status"

ordinary list
ordinary info -d soft
ordinary regs -d soft
ordinary regs -d soft --log
ordinary doctor -d soft
ordinary top --root "$folder/empty"
ordinary events -d soft
ordinary report -o "$folder/report.tar"
ordinary validate -d soft device
ordinary decode "$golden/index.json"
EMBENG_RECORD=$folder/run.ebrc "$embeng" validate -d soft device >/dev/null 2>&1
ordinary replay "$folder/run.ebrc"
ordinary plan --table t:4x1
ordinary plan --table t:4x1 --hosts 2
ordinary train "$folder/baskets.txt" --min-count 1 --epochs 1 --dim 4 --save "$folder/saved"
ordinary demo --source "$folder/status" --epochs 1
ordinary checkpoint ls "$golden"
ordinary trace show /dev/null
ordinary lookup "$folder/saved" items_in 0 1
ordinary config show "$folder/model.json"
ordinary fw show -d soft
ordinary bench --op limits --scale 0.002 --runs 5
ordinary tune --dry-run
ordinary conform "$root/tests/vectors/train/slots_given.json"

# Which verbs had a document without an error?
python3 - "$documents" $verbs >"$folder/out" 2>"$folder/err" <<'END'
import glob, json, sys
seen = [json.load(open(path)) for path in glob.glob(sys.argv[1] + "/*.json")]
good = {d["schema"][len("embeng."):-len("/1")] for d in seen if "error" not in d}
print(*(verb for verb in sys.argv[2:] if verb not in good), sep="\n")
END
for verb in $driver_only; do
	sed -i "/^$verb\$/d" "$folder/out"
done
[ ! -s "$folder/out" ] && report ok 'no verb is without an ordinary case' ||
	report no 'no verb is without an ordinary case'

# Failing cases: an option that no verb has, for each verb and each of its commands.
for verb in $verbs; do
	expect "embeng $verb, wrong option" 2 "$verb" --no-such-option --json
	for command in $("$embeng" "$verb" --list-cmds 2>/dev/null | cut -f1); do
		expect "embeng $verb $command, wrong option" 2 "$verb" "$command" --no-such-option --json
	done
done
expect 'no such verb' 2 no-such-verb --json

finish
