#!/bin/sh
# SPDX-License-Identifier: MIT
# What embeng checkpoint shows, and that a training which is stopped and resumed is one that
# never stopped. Speaks TAP.
# usage: checkpoint.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

cd "$folder" || exit 1
case $embeng in /*) ;; *) embeng=$OLDPWD/$embeng ;; esac

# Twelve groups of ten items; a basket is five of one group, so its rest tells the group.
python3 - <<'END'
import random

draw = random.Random(1)
with open("baskets.txt", "w") as out:
    for b in range(600):
        print(*draw.sample(["g%d-%d" % (b % 12, k) for k in range(10)], 5), file=out)
END

# same NAME: the files a and b are
same()
{
	cmp -s a b && report ok "$1" || report no "$1"
}

# contents DIR: every number of its tables and slots, and the state of the training
contents()
{
	for what in items_in items_in/accumulators items_out items_out/accumulators; do
		"$embeng" checkpoint dump "$1" $what
	done
	"$embeng" checkpoint ls "$1" --json | grep -v '"dir"'
}

# result: what the last document says of the tables' quality
result()
{
	grep -e '"loss"' -e '"hit_at_10"' -e '"items"' -e '"score"' out
}

expect 'help' 0 checkpoint --help
says out 'help names dump' '^  dump DIR'
expect 'help of dump' 0 checkpoint dump --help
says out 'dump tells of rows' '--rows=A:B'
expect 'no command' 2 checkpoint
expect 'unknown command' 2 checkpoint frob --json
document 'unknown command, document' 'd["schema"] == "embeng.checkpoint/1" and "frob" in d["error"]["message"]'
expect 'option before the command' 2 checkpoint --json ls whole
document 'option before the command, document' '"goes before" in d["error"]["message"]'
for verb in ls verify; do
	expect "$verb of nothing" 2 checkpoint $verb
	expect "$verb of two" 2 checkpoint $verb a b
	says err "$verb of two is said" "'b' is a second"
	expect "$verb of what is not there" 2 checkpoint $verb nowhere
	says err "$verb of what is not there is said" 'nowhere'
	expect "$verb of what is not there, JSON" 2 checkpoint $verb nowhere --json
	document "$verb of what is not there, document" \
		"d['command'] == '$verb' and d['error']['name'] == 'ENOENT'"
done

# -- a training, straight through --

expect 'training is saved' 0 train baskets.txt --save whole --query g3-7 -d soft:cores=1 --json
document 'training, document' '(d["checkpoint"]["dir"] == "whole" and d["stopped"] is None and
	d["resumed"] is None and d["checkpoint"]["saves"] == d["epochs"] == 14 and
	d["steps"] == d["updates"] == 210)'
result >whole.result
contents whole >whole.contents

expect 'ls' 0 checkpoint ls whole
says out 'ls has the step' '^whole: step 210, 2 tables, '
says out 'ls has a table' '^items_in  *120  *32  *30\.0 KiB  adagrad  *accumulators$'
expect 'ls, JSON' 0 checkpoint ls whole --json
document 'ls, document' '(d["command"] == "ls" and d["step"] == 210 and d["files"] >= 1 and
	[t["name"] for t in d["tables"]] == ["items_in", "items_out"] and
	d["tables"][1] == {"name": "items_out", "rows": 120, "dim": 32, "optimizer": "adagrad",
		"slots": ["accumulators"], "bytes": 120 * 32 * 4 * 2} and
	json.loads(d["program_state"])["schema"] == "embeng.training/1")'
expect 'verify' 0 checkpoint verify whole
says out 'verify says so' '^whole: no fault: 2 tables'
expect 'verify, JSON' 0 checkpoint verify whole --json
document 'verify, document' 'd["whole"] is True and d["finite"] is True and d["bytes"] > 61440 and d["chunks"] >= 1'

# -- earlier checkpoints: each epoch saved one, and two stay --

expect 'list' 0 checkpoint list whole
says out 'list has the newest' '^  *210  *2  '
[ "$(wc -l <out)" -eq 3 ] && report ok 'two are kept' || report no 'two are kept'
expect 'list, JSON' 0 checkpoint list whole --json
document 'list, document' '(len(d["checkpoints"]) == 2 and d["checkpoints"][0]["step"] == 210 and
	d["checkpoints"][1]["step"] < 210 and d["checkpoints"][0]["tables"] == 2)'
step=$(python3 -c 'import json; print(json.load(open("out"))["checkpoints"][1]["step"])')
expect 'verify of a step' 0 checkpoint verify whole --step "$step"
says out 'verify of a step says so' '^whole: no fault: 2 tables'
expect 'ls of a step' 0 checkpoint ls whole --step "$step"
says out 'ls has the step' "^whole: step $step, 2 tables"
expect 'a step that is not there' 2 checkpoint verify whole --step 211
says err 'which step' 'no checkpoint of step 211'
expect 'a step that is no number' 2 checkpoint verify whole --step x
expect 'dump takes no step' 2 checkpoint dump whole items_in --step 1

# -- dump --

expect 'dump' 0 checkpoint dump whole items_in
cp out all
[ "$(wc -l <all)" -eq 120 ] && [ "$(head -1 all | wc -w)" -eq 32 ] && report ok 'rows and columns' ||
	report no 'rows and columns'
for rows in 3:5 :2 118: 7 0:0 120: 0:120; do
	expect "rows $rows" 0 checkpoint dump whole items_in --rows $rows
	python3 -c 'import sys
rows, lines = sys.argv[1], open("all").readlines()
first, colon, end = rows.partition(":")
first, end = int(first or 0), int(end or 120) if colon else int(first) + 1
sys.exit(open("out").readlines() != lines[first:end])' $rows && report ok "these rows: $rows" ||
		report no "these rows: $rows"
done
for rows in 5:3 0:121 121 x 1:2:3 -1:2 99999999999999999999; do
	expect "refused: rows $rows" 2 checkpoint dump whole items_in --rows=$rows
	says err "explained: rows $rows" '--rows'
done
expect 'parameters by name' 0 checkpoint dump whole items_in/parameters
cmp -s out all && report ok 'parameters are the table' || report no 'parameters are the table'
expect 'no such table' 2 checkpoint dump whole items
says err 'no such table is named' "there is no table 'items'"
expect 'no such slot' 2 checkpoint dump whole items_in/momenta --json -o x
document 'no such slot, document' 'd["command"] == "dump" and "momenta" in d["error"]["message"]'
expect 'no table' 2 checkpoint dump whole
expect 'too much' 2 checkpoint dump whole items_in items_out
expect 'unknown format' 2 checkpoint dump whole items_in --format xml

expect 'npy' 0 checkpoint dump whole items_in/accumulators --rows 2:9 -o rows.npy --json
document 'npy, document' '(d["format"] == "npy" and d["rows"] == [2, 9] and d["dim"] == 32 and
	(d["table"], d["slot"], d["file"]) == ("items_in", "accumulators", "rows.npy"))'
expect 'the same as text' 0 checkpoint dump whole items_in/accumulators --rows 2:9
python3 -c '
import ast, struct, sys
data = open("rows.npy", "rb").read()
length, = struct.unpack("<H", data[8:10])
header = ast.literal_eval(data[10:10 + length].decode("latin1"))
wanted = {"descr": "<f4", "fortran_order": False, "shape": (7, 32)}
floats = struct.unpack("<224f", data[10 + length:])
text = [float(x) for x in open("out").read().split()]
single = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
sys.exit(data[:8] != b"\x93NUMPY\x01\0" or header != wanted or (10 + length) % 64 != 0 or
	[single(x) for x in text] != list(floats))' && report ok 'npy has header and numbers' ||
	report no 'npy has header and numbers'
expect 'npy to a pipe' 0 checkpoint dump whole items_in/accumulators --rows 2:9 --format npy
cmp -s out rows.npy && report ok 'npy to a pipe is the same' || report no 'npy to a pipe is the same'
expect 'text in a file' 0 checkpoint dump whole items_in -o text
cmp -s text all && report ok 'text in a file is the same' || report no 'text in a file is the same'
expect 'no room for a document' 2 checkpoint dump whole items_in --json
document 'no room for a document, said' '"-o FILE" in d["error"]["hint"]'
expect 'no folder' 2 checkpoint dump whole items_in -o nowhere/file
mkdir room
"$embeng" checkpoint dump whole items_in >/dev/full 2>err
[ $? -eq 5 ] && report ok 'stdout is full' || report no 'stdout is full'
says err 'stdout is full, said' 'stdout: No space left'
expect 'a full file' 5 checkpoint dump whole items_in -o /dev/full --format npy
(ulimit -f 8; trap '' XFSZ; "$embeng" checkpoint dump whole items_in -o room/file) >out 2>err
[ $? -ne 0 ] && [ -z "$(ls -A room)" ] && report ok 'no half file' || report no 'no half file'
python3 - "$embeng" <<'END' && report ok 'npy is not for a terminal' || report no 'npy is not for a terminal'
import os, pty, sys

pid, fd = pty.fork()
if not pid:
    os.execv(sys.argv[1], ["embeng", "checkpoint", "dump", "whole", "items_in", "--format", "npy"])
said = b""
while True:
    try:
        more = os.read(fd, 4096)
    except OSError:
        break
    if not more:
        break
    said += more
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code != 2 or b"not for a terminal" not in said or b"NUMPY" in said)
END

# -- stopped and resumed: before and after on other cores, at steps drawn anew each time --

python3 -c 'import random, sys
seed = int(sys.argv[1]); draw = random.Random(seed)
print("# seed", seed)
for run in range(6):
    print(*(draw.randint(1, 60) for _ in range(1 + run % 3)))' "$(date +%s)" >plan
grep '^#' plan
run=0
grep -v '^#' plan | while read -r stops; do
	run=$((run + 1))
	dir=parts$run
	core=$run
	resume=--save
	for stop in $stops; do
		core=$((core % 3 + 1))
		"$embeng" train baskets.txt $resume $dir -d soft:cores=$core --max-steps "$stop" \
			>>log$run 2>&1 || echo "stop $stop of $stops failed" >>failures
		resume=--resume
	done
	"$embeng" train baskets.txt --resume $dir -d soft:cores=$((run % 3 + 1)) --query g3-7 \
		--json >out 2>>log$run || echo "resuming after $stops failed" >>failures
	result >$dir.result
	contents $dir >$dir.contents
done
[ ! -e failures ] && report ok 'stops and resumes' || report no 'stops and resumes'
for run in 1 2 3 4 5 6; do
	cp whole.contents a
	cp parts$run.contents b
	same "run $run: the same tables, slots and state"
	cp whole.result a
	cp parts$run.result b
	same "run $run: the same loss, hit@10 and answers"
done

# Losses of the epochs as they are told, whole and in parts.
"$embeng" train baskets.txt | grep '^epoch' >a
for stop in 37 50; do
	"$embeng" train baskets.txt $([ $stop = 37 ] && echo --save || echo --resume) told \
		--max-steps $stop
done | grep '^epoch' >b
"$embeng" train baskets.txt --resume told | grep '^epoch' >>b
same 'the same loss of every epoch'

expect 'optimizer without slots' 0 train baskets.txt --optimizer sgd --learning-rate 0.1 \
	--epochs 40 --save sgd --json
result >a
expect 'stopped' 0 train baskets.txt --optimizer sgd --learning-rate 0.1 --epochs 40 \
	--save sgd2 --max-steps 100 --save-every 30 --json
document 'stopped, document' '(d["stopped"] == {"by": "max-steps", "epoch": 6, "step": 10} and
	d["checkpoint"]["saves"] == 4 and d["steps"] == 100 and "hit_at_10" not in d)'
expect 'resumed' 0 train baskets.txt --resume sgd2 --json
document 'resumed, document' 'd["resumed"] == {"epoch": 6, "step": 10} and d["steps"] == 500'
result >b
same 'without slots, the same result'
expect 'trained on' 0 train baskets.txt --resume sgd2 --epochs 45 --save longer --json
document 'trained on, document' 'd["steps"] == 75 and d["checkpoint"]["dir"] == "longer"'
expect 'nothing left to train' 0 train baskets.txt --resume longer
says out 'nothing left is said' '^Resumed after epoch 45 of 45, the last epoch'

# -- what cannot be --

cp -r parts1 kept
expect 'a checkpoint is not replaced' 2 train baskets.txt --save kept
says err 'a checkpoint is not replaced, said' 'is not replaced'
contents parts1 >a
contents kept >b
same 'it was not'
expect 'other options' 2 train baskets.txt --resume kept --dim 16
says err 'other options are named' 'it was trained with --dim 32, not 16'
expect 'fewer epochs' 2 train baskets.txt --resume kept --epochs 3
says err 'fewer epochs are named' '--epochs 3 lies before it'
# Old rows go on, new items get rows behind them, and items that are gone stay.
cp -r parts1 grown
(grep -v g3-7 baskets.txt; for i in 1 2 3 4 5 6; do echo new-1 g0-1 new-2 g0-2 g0-3; done) >other.txt
expect 'other data, but no epochs for it' 2 train other.txt --resume grown --epochs 14
says err 'epochs for other data are asked for' '14 epochs are trained already'
expect 'other data' 0 train other.txt --resume grown --epochs 15 --json --query g3-7 --query new-1
document 'other data, document' '(d["items"] == 122 and d["new_items"] == 2 and
	d["unused_items"] == 1 and d["resumed"] == {"epoch": 14, "step": 0} and
	d["goes_with"]["new-1"][0]["item"] in ("new-2", "g0-1", "g0-2", "g0-3") and
	d["goes_with"]["g3-7"][0]["item"].startswith("g3-"))'
"$embeng" checkpoint dump parts1 items_in --names | grep '^g3-7' >a
"$embeng" checkpoint dump grown items_in --names | grep '^g3-7' >b
same 'a row that is used no more stays'
"$embeng" checkpoint dump parts1 items_in --names | cut -f1 >a
"$embeng" checkpoint dump grown items_in --names | cut -f1 | head -120 >b
same 'old rows keep their numbers'
expect 'a longer list of names' 0 checkpoint dump grown items_in --rows 120: --names
[ "$(cut -f1 <out | tr '\n' ' ')" = 'new-1 new-2 ' ] && report ok 'new rows' || report no 'new rows'

# -- names of rows --

expect 'names have no .npy' 2 checkpoint dump whole items_in --names -o x.npy
says err 'the file of names is told' 'embeng-items.names of the folder'
"$embeng" checkpoint dump whole items_in --names | cut -f2 >a
"$embeng" checkpoint dump whole items_in >b
same 'names are in front of the numbers'
row=$(grep -n '^g3-7$' whole/embeng-items.names | cut -d: -f1)
expect 'a row by its name' 0 lookup whole items_in g3-7
[ "$(cut -d: -f2 <out)" = " $(sed -n "${row}p" b)" ] && report ok 'it is this row' ||
	report no 'it is this row'
says out 'number and name are shown' "^$((row - 1)) g3-7: "
expect 'names and numbers' 0 lookup whole items_in g3-7 $((row - 1)) --json
document 'names and numbers, document' '(d["names"] == ["g3-7"] * 2 and
	d["ids"][0] == d["ids"][1] and d["activations"][0] == d["activations"][1])'
expect 'a bag of names' 0 lookup whole basket g3-7 g3-8
expect 'an unknown name' 2 lookup whole items_in G3-77
says err 'a near name is told' 'Near it: g3-7'
expect 'an unknown query' 2 train baskets.txt --query g3_7
says err 'a near query is told' 'Near it: g3-7'
awk '{ for (i = 1; i <= NF; i++) { sub("g", "", $i); sub("-", "", $i) } print }' baskets.txt >digits.txt
"$embeng" train digits.txt --epochs 1 --save digits >out 2>err
expect 'a number is a row' 0 lookup digits items_in 7
says out 'the row of a number' '^7 '
expect 'a number is a name' 0 lookup digits items_in --names 37
says out 'the name of a number' '^[0-9]* 37: '
expect 'resharded' 0 checkpoint reshard whole names2 --hosts 2
expect 'names are resharded, too' 0 lookup names2 items_in g3-7
cp -r whole nameless
sed -i 's/^g3-7$/g3-X/' nameless/embeng-items.names
expect 'changed names' 11 checkpoint verify nameless
expect 'changed names are not used' 11 lookup nameless items_in g3-X
rm nameless/embeng-items.names
for verb in 'checkpoint verify nameless' 'lookup nameless items_in g3-7' \
	'checkpoint dump nameless items_in --names' 'train baskets.txt --resume nameless'; do
	expect "lost names: $verb" 11 $verb
	says err "lost names are named: $verb" 'embeng-items.names: No such file'
done
expect 'numbers need no names' 0 lookup nameless items_in 3
says out 'there is no name then' '^3: '
expect 'nothing to resume' 2 train baskets.txt --resume nowhere
says err 'nothing to resume, hint' '--save DIR starts'
expect 'nowhere to save' 2 train baskets.txt --save nowhere/below
expect 'a file to save in' 2 train baskets.txt --save other.txt
expect 'every step, but where' 2 train baskets.txt --save-every 3
expect 'no steps' 2 train baskets.txt --max-steps 0

# No room for a second checkpoint: the first stays.
(ulimit -f 20; trap '' XFSZ
"$embeng" train baskets.txt --resume kept --epochs 20 --json) >out 2>err
[ $? -eq 5 ] && report ok 'no room to save' || report no 'no room to save'
document 'no room to save, document' 'd["error"]["name"] == "EFBIG" and "kept" in d["error"]["message"]'
contents kept >a
contents parts1 >b
same 'the old checkpoint stays'

# A byte of the first shard of a copy of the checkpoint is another
cp -r whole hurt
shard=$(python3 -c 'import json; print(json.load(open("hurt/index.json"))["files"][0]["name"])')
python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-5, 2); byte = f.read(1); f.seek(-5, 2); f.write(bytes([byte[0] ^ 1]))' "hurt/$shard"
expect 'corrupt' 11 checkpoint verify hurt
says err 'corrupt: the file is named' "$shard"
says err 'corrupt: the offset is named' 'offset'
expect 'corrupt, JSON' 11 checkpoint verify hurt --json
document 'corrupt, document' 'd["error"]["name"] == "EBADMSG" and "safetensors" in d["error"]["message"]'
table=items_in
"$embeng" checkpoint dump hurt items_in >/dev/null 2>&1 && table=items_out
expect 'a corrupt table is not dumped' 11 checkpoint dump hurt $table -o room/file
[ -z "$(ls -A room)" ] && report ok 'nor half of it' || report no 'nor half of it'
expect 'corrupt is not resumed' 11 train baskets.txt --resume hurt
: >hurt/index.json
expect 'an empty index' 11 checkpoint verify hurt
says err 'an empty index, said' 'no JSON at byte 0: the text ends too early'
echo '{}' >hurt/index.json
expect 'corrupt index' 11 checkpoint ls hurt

# -- killed at any moment, often while it saves: what is there goes on to the same end --

"$embeng" train baskets.txt --epochs 20 --save unharmed >out 2>err
contents unharmed >a
python3 - "$embeng" <<'END' >kills 2>&1 && report ok 'killed' || report no 'killed'
import os, random, subprocess, sys, time

seed = time.time_ns()
print("seed", seed)
draw = random.Random(seed)
embeng = sys.argv[1]
for kill in range(12):
    begun = os.path.exists("killed/index.json")
    child = subprocess.Popen([embeng, "train", "baskets.txt", "--epochs", "100000",
                              "--resume" if begun else "--save", "killed",
                              "--save-every", "1", "--max-steps", "20"],
                             stdout=subprocess.DEVNULL)
    time.sleep(draw.random() * 0.15)
    child.kill()
    ended = child.wait()
    assert ended in (0, -9), ended
    if os.path.exists("killed/index.json"):
        subprocess.check_call([embeng, "checkpoint", "verify", "killed"])
END
sed 's/^/# /' kills
expect 'goes on after kills' 0 train baskets.txt --resume killed --epochs 20
contents killed >b
same 'as if it had never been killed'
[ "$(ls killed | grep -c safetensors)" -eq "$(ls unharmed | grep -c safetensors)" ] &&
	report ok 'no shards are left behind' || report no 'no shards are left behind'

# -- a signal ends the step, saves, and ends the program --

python3 - "$embeng" <<'END' >signals 2>&1 && report ok 'signals' || report no 'signals'
import os, signal, subprocess, sys, time

embeng = sys.argv[1]
long = [embeng, "train", "baskets.txt", "--epochs", "100000", "--save-every", "1000000"]


def stop(command, number, grown):
    """Sends the signal once the command has got so far; its output and how it ended."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    while child.poll() is None and not grown(child):
        time.sleep(0.01)
    child.send_signal(number)
    return child.communicate()[0], child.returncode


def trained(child):
    return "epoch 1:" in child.stdout.readline()


for number in signal.SIGINT, signal.SIGTERM:
    said, ended = stop(long + ["--save", f"stopped{number}"], number, trained)
    assert ended == -number, ended
    assert "Stopped by a signal after epoch " in said, said
    assert f"--resume stopped{number}" in said, said
    assert not subprocess.call([embeng, "checkpoint", "verify", f"stopped{number}"])

# A demo leaves nothing behind.
os.mkdir("tmp")
os.environ["TMPDIR"] = os.path.abspath("tmp")
with open("status", "w") as out:
    for user, line in enumerate(open("baskets.txt")):
        print(f"Package: p{user}\nDepends: {', '.join(line.split())}\n", file=out)
demo = [embeng, "demo", "--source", "status", "--epochs", "100000"]
said, ended = stop(demo, signal.SIGINT, lambda child: bool(os.listdir("tmp")) and trained(child))
assert ended == -signal.SIGINT, ended
assert not os.listdir("tmp"), os.listdir("tmp")
END
[ -s signals ] && sed 's/^/# /' signals

expect 'demo' 0 demo --source status --query g3-7 --json
document 'demo answers from a checkpoint' '(d["checkpoint"]["temporary"] and
	d["checkpoint"]["dir"] is None and d["checkpoint"]["answers"] and
	d["checkpoint"]["bytes"] > 61440 and
	all(i["item"].startswith("g3-") for i in d["goes_with"]["g3-7"]))'
result >a
expect 'demo keeps its checkpoint' 0 demo --source status --query g3-7 --save demo --json
document 'demo says where' 'd["checkpoint"]["dir"] == "demo" and not d["checkpoint"]["temporary"]'
result >b
same 'the same answers'
expect 'demo whole' 0 checkpoint verify demo
expect 'demo as text' 0 demo --source status --query g3-7
says out 'demo says where it answers from' 'the answers are looked up in that checkpoint'
expect 'demo does not replace it' 2 demo --source status --save demo
TMPDIR=$folder/tmp expect 'demo, elsewhere' 0 demo --source status
[ -z "$(ls -A tmp)" ] && report ok 'nothing is left behind' || report no 'nothing is left behind'
TMPDIR=$folder/nowhere expect 'demo without a temporary folder' 2 demo --source status
says err 'and says so' 'no temporary folder'

finish
