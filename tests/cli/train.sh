#!/bin/sh
# SPDX-License-Identifier: MIT
# What train and demo learn, print and exit with. Speaks TAP.
# usage: train.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

# Without the name of the device, either, which tells the memory that it found.
without_times()
{
	grep -v -e 'seconds' -e '"device":' -e '"\(check\|lookup\|partition\|update\|rings\|copies\|dense\)":' \
		"$folder/out"
}

same_loss="('\"loss\": %.9g' % d['loss']) in open('$folder/first').read()"

# Twelve groups of ten items; a basket is five of one group, so its rest tells the group.
python3 - "$folder" <<'END'
import random, sys

draw = random.Random(1)
folder = sys.argv[1]
baskets = [draw.sample(["g%d-%d" % (b % 12, k) for k in range(10)], 5) for b in range(600)]
with open(folder + "/baskets.txt", "w") as out:
    for items in baskets:
        print(*items, file=out)
with open(folder + "/ratings.csv", "w") as out:
    print("userId,movieId,rating,timestamp", file=out)
    for user, items in enumerate(baskets):
        for when, item in enumerate(items):
            print(user, item, 4.5, 1000 + when, sep=",", file=out)
with open(folder + "/status", "w") as out:
    for user, items in enumerate(baskets):
        print("Package: p%d\nDepends: %s\n" % (user, ", ".join(items)), file=out)
with open(folder + "/noise.txt", "w") as out:
    for _ in range(100):
        print("common", "usual", *draw.sample(range(40), 2), file=out)
END

learned='d["hit_at_10"] > 0.9 and d["popularity_hit_at_10"] < 0.4'
counts='d["baskets"] == 600 and d["items"] == 120 and d["lookups"] == d["updates"] > 0'
times='d["seconds"] > 0 and set(d["stage_seconds"]) == {"check", "lookup", "partition",
	"update", "rings", "copies", "dense"} and d["bytes_copied"] == 0'
mates='all(i["item"].startswith("g3-") for i in d["goes_with"]["g3-7"])'

expect "baskets are learned" 0 train "$folder/baskets.txt" --query g3-7 --json
document "schema" 'd["schema"] == "embeng.train/1"'
document "far above popularity" "$learned"
document "counts" "$counts"
document "times" "$times"
document "neighbors are of the group" "$mates"
document "hot rows have names" 'all(r["item"][0] == "g" and r["count"] > 0 for r in d["hot_rows"])'
without_times >"$folder/first"
expect "again" 0 train "$folder/baskets.txt" --query g3-7 --json
without_times >"$folder/second"
cmp -s "$folder/first" "$folder/second" && report ok "same seed, same result" ||
	report no "same seed, same result"
expect "one core" 0 train "$folder/baskets.txt" -d soft:cores=1 --json
document "any cores, same loss" "d['cores'] == 1 and $same_loss"
expect "other seed" 0 train "$folder/baskets.txt" --seed 2 --json
document "other seed learns, otherwise" "d['hit_at_10'] > 0.9 and not $same_loss"
expect "ratings by time" 0 train "$folder/ratings.csv" --split time --json
document "ratings are learned" "$learned and $counts"
for optimizer in adagrad_momentum ftrl adam; do
	expect "$optimizer" 0 train "$folder/baskets.txt" --optimizer "$optimizer"
done
expect "sgd" 0 train "$folder/ratings.csv" --optimizer sgd --learning-rate 0.1 --epochs 60 \
	--dim 16 --negatives 3 --batch 64 --json
document "sgd learns" "d['hit_at_10'] > 0.7 and d['epochs'] == 60"
expect "text" 0 train - --query g3-7 <"$folder/baskets.txt"
says out "losses" '^epoch 6: loss '
says out "quality" '^hit@10     0\.9\|^hit@10     1\.0'
says out "answer" '^g3-7 goes with: g3-'
expect "demo" 0 demo --source "$folder/status" --json
document "demo learns" "d['schema'] == 'embeng.demo/1' and $learned and $counts"
document "dpkg's status is said to be little" '"little data" in d["note"]'

expect "divergence" 1 train "$folder/baskets.txt" --optimizer momentum --learning-rate 10 \
	--save "$folder/diverged" --json
document "divergence, document" 'd["error"]["code"] == 1 and "the training diverged: the loss is not finite in epoch" in d["error"]["message"]'
if [ -e "$folder/diverged/index.json" ]; then
	expect "the last checkpoint is whole" 0 checkpoint verify "$folder/diverged"
	"$embeng" checkpoint dump "$folder/diverged" items_out >"$folder/out"
	grep -q -e nan -e inf "$folder/out" && report no "its rows are finite" ||
		report ok "its rows are finite"
fi

expect "noise is not learned" 1 train "$folder/noise.txt" --epochs 1 --learning-rate 1e-9 --json
document "noise has its document" 'd["hit_at_10"] <= d["popularity_hit_at_10"]'
expect "nothing to learn" 1 train "$folder/baskets.txt" --min-count 1000
says err "nothing to learn is said" 'no basket has 3 items that are each in 1000 baskets'
echo "Package: adduser" >"$folder/tiny"
expect "a tiny system" 1 demo --source "$folder/tiny" --json
document "a tiny system has its document" 'd["error"]["name"] == "ENODATA"'

printf 'user,item\n1,2\n1\n' >"$folder/short.csv"
expect "malformed csv" 11 train "$folder/short.csv"
says err "csv line named" 'short.csv:3: the line has 1 columns, the first line has 2'
printf 'a b\n\001\n' >"$folder/control.txt"
expect "malformed basket" 11 train "$folder/control.txt" --json
document "basket line named" '"control.txt:2: control character" in d["error"]["message"]'
printf 'Package: a\nnonsense\n' >"$folder/bad"
expect "malformed package list" 11 demo --source "$folder/bad"
says err "package line named" 'bad:2: the line is neither'

# -- data as people have it --

# The same ratings in other forms: the numbers of the report are those of ratings.csv.
"$embeng" train "$folder/ratings.csv" --epochs 1 2>"$folder/err" | sed -n 2p >"$folder/counts"
says err "the format is said" 'ratings.csv is read as ratings, with a comma between the columns$'
sed -n '2,$p' "$folder/ratings.csv" >"$folder/plain.csv"
tr ',' '\t' <"$folder/plain.csv" >"$folder/u.data"
sed 's/,/::/g' "$folder/plain.csv" >"$folder/ratings.dat"
sed 's/,/;/g; s/4\.5/4,5/' "$folder/ratings.csv" >"$folder/semicolons"
(printf '\357\273\277'; sed 's/$/\r/' "$folder/ratings.csv") >"$folder/windows.csv"
sed 's/[^,][^,]*/"&"/g; s/$/ /' "$folder/ratings.csv" >"$folder/quotes.csv"
for file in plain.csv u.data ratings.dat semicolons windows.csv quotes.csv; do
	expect "ratings in $file" 0 train "$folder/$file" --epochs 1 --split time
	[ "$(sed -n 2p "$folder/out")" = "$(cat "$folder/counts")" ] && report ok "counts of $file" ||
		report no "counts of $file"
done
(printf '\357\273\277'; cat "$folder/baskets.txt") >"$folder/mark.txt"
"$embeng" train "$folder/baskets.txt" --epochs 1 --json 2>/dev/null | grep '"loss"' >"$folder/loss"
expect "baskets with a byte order mark" 0 train "$folder/mark.txt" --epochs 1 --json
grep '"loss"' "$folder/out" | cmp -s - "$folder/loss" && report ok "learned from mark.txt" ||
	report no "learned from mark.txt"
tr ' ' ',' <"$folder/baskets.txt" >"$folder/commas.txt"
expect "baskets with commas are asked about" 11 train "$folder/commas.txt"
says err "the question names options" 'Say --format ratings --separator comma.*--format baskets --separator comma'
expect "the question is answered" 0 train "$folder/commas.txt" --format baskets --separator , \
	--epochs 1 --json
grep '"loss"' "$folder/out" | cmp -s - "$folder/loss" && report ok "learned from commas.txt" ||
	report no "learned from commas.txt"
awk -F, '{ print $2 "|" $4 "|" $1 }' "$folder/ratings.csv" | sed '1s/.*/was|wann|wer/' >"$folder/bars"
for columns in item,timestamp,user user=wer,item=was,timestamp=wann; do
	expect "columns $columns" 0 train "$folder/bars" --columns $columns --split time --epochs 1
	[ "$(sed -n 2p "$folder/out")" = "$(cat "$folder/counts")" ] &&
		report ok "counts with $columns" || report no "counts with $columns"
done
iconv -f UTF-8 -t UTF-16 "$folder/baskets.txt" >"$folder/wide.txt"
gzip -c "$folder/baskets.txt" >"$folder/baskets.gz"
expect "UTF-16" 11 train "$folder/wide.txt"
says err "UTF-16 is named" 'wide.txt:1: the file is UTF-16 text'
expect "gzip" 11 train "$folder/baskets.gz"
says err "gzip is named" 'baskets.gz:1: the file is compressed by gzip'
expect "columns of baskets" 2 train "$folder/baskets.txt" --format baskets --columns user,item

expect "no file" 2 train
expect "two files" 2 train "$folder/baskets.txt" "$folder/baskets.txt"
expect "file not there" 2 train "$folder/none"
expect "source not there" 2 demo --source "$folder/none"
expect "argument of demo" 2 demo "$folder/status"
expect "time without times" 2 train "$folder/baskets.txt" --split time
says err "time without times is said" 'needs a timestamp'
expect "unknown item" 2 train "$folder/baskets.txt" --query nothing
says err "unknown item named" "'nothing' is not among the 120 items"
expect "no such device" 6 train "$folder/baskets.txt" -d nothing
expect "no such node" 6 train "$folder/baskets.txt" -d /dev/accel/accel99
says err "no such node, what to do" '`embeng list` shows the devices'
[ ! -s "$folder/out" ] && report ok "no such node, alone" || report no "no such node, alone"
EMBENG_DEVICE=bogus "$embeng" train "$folder/baskets.txt" >"$folder/out" 2>"$folder/err"
says err "no such device in the environment" 'EMBENG_DEVICE: "bogus" is not known'
for wrong in dim=0 dim=x epochs=0 negatives=0 learning-rate=0 learning-rate=x \
	optimizer=adamw batch=0 seed=-1 split=item min-count=0 min-basket=2 format=xml separator=x \
	columns=user; do
	expect "refused: --$wrong" 2 train "$folder/baskets.txt" "--$wrong"
	says err "explained: --$wrong" "--${wrong%%=*} takes"
done

finish
