#!/bin/sh
# SPDX-License-Identifier: MIT
# What bench prints and exits with, on workloads that are scaled down. Speaks TAP.
# usage: bench.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

small='--scale 0.002 --runs 5'

# In Python: what every result has, whatever was measured
common='all(r["step_ms"]["min"] <= r["step_ms"]["median"] <= r["step_ms"]["max"] and len(r["run_ms"]) == r["runs"] == 5 and sorted(r["run_ms"])[2] == r["step_ms"]["median"] and r["scale"] == 0.002 and r["variant"] and r["device"] and r["threads"] == 1 and r["row_bytes"] == 4 * r["shape"]["dim"] and set(r["stage_ms"]) == {"check", "lookup", "partition", "update", "ring", "copy", "other"} and min(r["stage_ms"].values()) >= 0 and r["limits"]["gather_rows_per_s"]["min"] > 0 for r in d["results"])'
of_call='[(r["workload"], r["op"], r["optimizer"]) for r in d["results"]]'

# shellcheck disable=SC2086
{
expect 'no options but the scale' 0 bench $small
says out 'the text, lookups' '^W1  *fwd  *-  *1 .* M ids/s .* of the limit, [0-9.]* ms$'
says out 'the text, training' '^W1  *train  *adagrad  *1 '
says out 'the text, limits' '^limits: rows of 256 bytes from '
says out 'the text, scale' 'scale 0.002: other workloads'

expect 'the document' 0 bench $small --json
document 'its schema' 'd["schema"] == "embeng.bench/1" and d["version"] and d["machine"]["cpus"] >= 1'
document 'a warning, or idle processors' 'any("busy" in w for w in d["warnings"]) == (not 0 <= d["machine"]["busy"] < 0.05)'
document 'its results' "$of_call == [('W1', 'fwd', None), ('W1', 'train', 'adagrad')]"
document 'what all results have' "$common"
document 'its ids' 'all(r["ids_per_step"] == 8 * 8 * 20 and 0 < r["unique_per_step"] <= r["ids_per_step"] for r in d["results"])'
document 'its shape' 'd["results"][0]["shape"] == {"rows": [2000] * 8, "dim": 64, "samples": 8, "ids_per_sample": 20, "pooled": True}'
document 'its memory' '[r["memory"]["table_bytes"] for r in d["results"]] == [8 * 2000 * 256, 8 * 2000 * 512]'
document 'its ratios can be recomputed' 'all(abs(1e3 * (r["ids_per_step"] / l["gather_rows_per_s"]["median"] + (r["op"] == "train") * (1 + r["slots"]) * r["unique_per_step"] / l["rmw_rows_per_s"]["median"]) / r["step_ms"]["median"] / r["of_limit"] - 1) < 1e-6 for r in d["results"] for l in [r["limits"]])'
document 'nothing is copied' 'all(r["copied_bytes_per_step"] == 0 for r in d["results"])'

expect 'all optimizers' 0 bench $small --op train --optimizer adam --optimizer sgd --optimizer adagrad --json
document 'all optimizers, their slots' '[(r["optimizer"], r["slots"]) for r in d["results"]] == [("sgd", 0), ("adagrad", 1), ("adam", 2)]'

expect 'other workloads' 0 bench $small --op fwd --workload W2 --workload W3 --workload W4 --workload W5 --workload W1-zipf1.2 --workload W1-same --json
document 'other workloads, in order' '[r["workload"] for r in d["results"]] == ["W2", "W3", "W4", "W5", "W1-zipf1.2", "W1-same"] and len(d["limits"]) == 6'
document 'other workloads, all there' "$common"
document 'other workloads, their ids' '[r["ids_per_step"] for r in d["results"]] == [1280, 26 * 8, 32 * 50, 8 * 128, 1280, 1280]'
document 'one row alone' 'd["results"][-1]["unique_per_step"] == 8'
document 'hot rows are fewer' 'd["results"][4]["unique_per_step"] < d["results"][0]["unique_per_step"] < 1280'

expect 'other workloads, trained and partitioned' 0 bench $small --op train --op partition --workload W2 --workload W3 --workload W4 --workload W5 --json
document 'other workloads, their operations' '[c[:2] for c in '"$of_call"'] == [(w, op) for w in ("W2", "W3", "W4", "W5") for op in ("train", "partition")]'
expect 'two threads' 0 bench $small --threads 2 --op fwd --json
document 'two threads, said' 'd["results"][0]["threads"] == 2 and "cores=2" in d["results"][0]["device"] and d["limits"][0]["threads"] == 2'
planned=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["results"][0]["memory"]["planned_bytes"])' "$folder/out")
expect 'a device of two cores' 0 bench $small --op fwd -d soft:cores=2 --json
document 'a device of two cores, its limits' 'd["results"][0]["threads"] == d["results"][0]["limits"]["threads"] == d["limits"][0]["threads"] == 2'
document 'a device of two cores, its plan' "d['results'][0]['memory']['planned_bytes'] == $planned"
expect 'the same cores twice' 0 bench $small --op limits -d soft:cores=2 --threads 2 --json
expect 'other cores than threads' 2 bench $small -d soft:cores=2 --threads 3
says err 'other cores than threads, said' '--threads 3, but the device soft:cores=2[^ ]* has 2 cores'
for device in soft soft: soft:variant=portable; do
	expect "cores of $device" 0 bench $small --op limits -d $device --threads 2 --json
	document "cores of $device, as many as threads" 'd["limits"][0]["threads"] == 2'
done
expect 'more threads than processors' 0 bench $small --op limits --threads 64 --json
document 'more threads than processors, warned' 'any("64 threads share" in w for w in d["warnings"]) == (d["machine"]["cpus"] < 64)'
expect 'another device' 0 bench $small --op fwd --device soft:cores=1,memory=64M,variant=portable --json
document 'another device, said' 'd["results"][0]["variant"] == "portable"'
export EMBENG_DEVICE=soft:cores=3,memory=64M
expect 'a device of the environment' 0 bench $small --op fwd --json
unset EMBENG_DEVICE
document 'a device of the environment, its cores' 'd["results"][0]["threads"] == 3'
expect 'ids of 32 bits with weights' 0 bench $small --op fwd --index int32 --weights --json
document 'ids of 32 bits with weights, said' '(lambda r: r["id_type"] == "int32" and r["weights"])(d["results"][0])'

expect 'partition' 0 bench $small --op partition --workload W5 --json
document 'partition, said' '(lambda r: r["op"] == "partition" and r["weights"] and r["id_type"] == "int32" and r["partition"] == "weights and statistics" and r["minibatches"] == 1 and r["dropped_ids"] == 0 and r["sparse_cores"] == 64)(d["results"][0]) and len(d["results"]) == 1'
document 'partition, all there' "$common"
expect 'partition, its costs' 0 bench $small --op partition --costs --json
document 'partition, each once' 'len({r["partition"] for r in d["results"]}) == len(d["results"]) == 10'
document 'partition, without weights' '[r["weights"] for r in d["results"] if "without" in r["partition"]] == [False, False]'
document 'partition, copied' '[r["copied_bytes_per_step"] > 0 for r in d["results"]] == [r["partition"] == "output copied" for r in d["results"]]'

expect 'rings' 0 bench $small --op ring --json
document 'rings, each once' '{(r["command"], r["commands_per_step"], r["wait"]) for r in d["results"]} == {(c, n, w) for c in ("empty", "bag of 20") for n in (1, 8, 64) for w in ("polled", "waiting")} and len(d["results"]) == 12'
document 'rings, their times' 'all(abs(r["us_per_command"]["median"] * r["commands_per_step"] / 1e3 / r["step_ms"]["median"] - 1) < 1e-6 and 0 < r["engine_us_per_command"] <= r["us_per_command"]["max"] for r in d["results"])'
document 'rings, in flight' 'all(1 <= r["in_flight"] <= r["commands_per_step"] for r in d["results"])'
document 'rings, all there' "$common"
expect 'saves' 0 bench $small --op save --json
document 'saves, once' "$of_call"' == [("W1", "save", "adagrad")]'
document 'saves, their numbers' 'all(r["save"]["files"] == 1 and r["save"]["bytes"] > 8 * 2000 * 64 * 4 * 2 and 0 < r["save"]["quiet_step_ms"]["median"] and 0 < r["save"]["save_ms"]["min"] and r["save"]["median_step_ms"]["min"] <= r["step_ms"]["max"] == r["save"]["longest_step_ms"]["max"] and r["save"]["rows"] == 8 * 2000 for r in d["results"])'
document 'deltas, their numbers' 'all(0 < r["save"]["delta"]["save_ms"]["min"] and r["save"]["delta"]["deltas"] in range(r["runs"] + 1) and 0 < r["save"]["delta"]["rows"] <= 8 * 2000 and 0 < r["save"]["delta"]["bytes"] and r["save"]["delta"]["longest_step_ms"]["median"] >= r["save"]["delta"]["median_step_ms"]["min"] and abs(r["save"]["delta"]["longest_step_ratio"]["max"] * r["save"]["quiet_step_ms"]["median"] - r["save"]["delta"]["longest_step_ms"]["max"]) < 1e-6 * r["save"]["delta"]["longest_step_ms"]["max"] for r in d["results"])'
document 'saves, all there' "$common"
expect 'saves, the text' 0 bench $small --op save
says out 'saves, the line' '^  longest steps while saving; without a save a step takes [0-9.]* ms '
says out 'deltas, their line' ' of what these steps changed, .* rows: [0-9.]* ms; the longest step meanwhile '
says out 'saves, their line' '^  a full save, .* in 1 file, each synced once: [0-9.]* ms; the longest step meanwhile [0-9.]* times one without'
expect 'contention' 0 bench $small --op contend --json
document 'contention, each once' '[(r["producers"], r["wait"]) for r in d["results"]] == [(n, w) for n in (1, 2, 4) for w in ("polled", "waiting")]'
document 'contention, its times' 'all(abs(r["us_per_command"]["median"] * r["producers"] / 1e3 / r["step_ms"]["median"] - 1) < 1e-6 and r["commands_per_step"] == r["in_flight"] == r["producers"] and r["ids_per_step"] == 20 * r["producers"] and r["command"] == "bag of 20" for r in d["results"])'
document 'contention, all there' "$common"
expect 'contention, the text' 0 bench $small --op contend
says out 'contention, a line' '^W1  *contend  *waiting  *4 .* us a command, the engine '

expect 'rings, the text' 0 bench $small --op ring
says out 'rings, a line' '^W1  *empty  *polled  *1 .* us a command, the engine '

expect 'another shape' 0 bench $small --tables 30 --rows 300 --dim 12 --samples 40 --pool 3 --op fwd --json
document 'another shape, its own' '[(r["workload"], r["shape"], r["ids_per_step"]) for r in d["results"]] == [("shaped", {"rows": [300] * 30, "dim": 12, "samples": 40, "ids_per_sample": 3, "pooled": True}, 3600)]'
expect 'more tables alone' 0 bench $small --workload W4 --tables 2 --op fwd --json
document 'more tables alone, of the rows of others' '[(r["workload"], r["shape"]["rows"], r["shape"]["dim"]) for r in d["results"]] == [("shaped", [32000] * 2, 32)]'
expect 'too many tables' 2 bench --tables 201
says err 'too many tables, how many there may be' '--tables takes a number from 1 to 200'
expect 'no dim' 2 bench --dim 0
says err 'no dim, what it may be' '--dim takes a number from 1 to 4096'

expect 'limits' 0 bench $small --op limits --workload W4 --json
document 'how they were taken' 'd["limits"][0]["gather_cache"] in ("first", "second", "touch", "burst") and d["limits"][0]["rmw_cache"] in ("second", "burst") and min(d["limits"][0][k] for k in ("gather_ahead", "rmw_ahead")) >= 8'
document 'limits alone' 'd["results"] == [] and d["limits"][0]["row_bytes"] == 128 and all(d["limits"][0][k]["min"] > 0 for k in ("gather_rows_per_s", "rmw_rows_per_s", "stream_bytes_per_s"))'
document 'limits of two processors' '("futex_us" in d["limits"][0]) == (d["machine"]["cpus"] > 1)'

expect 'a drawing' 0 bench $small --op fwd --op partition --svg "$folder/x.svg"
python3 -c 'import sys, xml.etree.ElementTree as t
n = t.parse(sys.argv[1]).getroot().findall(".//{*}title")
sys.exit(len(n) not in (14, 15))' "$folder/x.svg" 2>"$folder/err" &&
	report ok 'a drawing, its stages' || report no 'a drawing, its stages'
expect 'a drawing nowhere' 2 bench $small --op limits --svg "$folder/nowhere/x.svg"
says err 'a drawing nowhere, said' 'nowhere/x.svg: No such file'

expect 'no folder' 2 bench $small --op fwd --input "$folder/nothing"
says err 'no folder, file' 'nothing/ids_0_0.bin: No such file'
mkdir "$folder/in"
head -c 100 /dev/zero >"$folder/in/ids_0_0.bin"
expect 'a file of another workload' 2 bench $small --op fwd --input "$folder/in"
says err 'a file of another workload, said' 'ids_0_0.bin, offset 100: the file has 100 bytes, W1 wants 1280 (int64) or 640 (int32)'

# given FOLDER TABLES SAMPLES POOL GRADIENT-FLOATS: two batches of five ids a table, by turns
given()
{
	mkdir "$1"
	python3 -c 'import array, sys
folder, (tables, samples, pool, floats) = sys.argv[1], map(int, sys.argv[2:])
for name in (f"{b}_{t}.bin" for b in range(2) for t in range(tables)):
    array.array("q", [k % 5 for k in range(samples * pool)]).tofile(open(f"{folder}/ids_{name}", "wb"))
    array.array("q", range(0, samples * pool, pool)).tofile(open(f"{folder}/offsets_{name}", "wb"))
array.array("f", [0.5] * floats).tofile(open(f"{folder}/grad.bin", "wb"))' "$@"
}
given "$folder/w1" 8 8 20 512
given "$folder/w5" 1 8 128 131072
for workload in W1:1280:40 W5:1024:5; do
	which=${workload%%:*} counts=${workload#*:}
	input=$folder/$(echo "$which" | tr W w)
	expect "$which of a folder" 0 bench $small --op fwd --op train --op partition --workload "$which" --input "$input" --json
	document "$which of a folder, its ids" 'len(d["results"]) == 3 and all(r["input"] == "'"$input"'" and r["batches"] == 2 and r["ids_per_step"] == '"${counts%:*}"' for r in d["results"])'
	document "$which of a folder, its rows" '[r["unique_per_step"] for r in d["results"] if r["op"] == "train"] == ['"${counts#*:}"']'
done
}

expect 'more than there is' 5 bench --scale 0.002 --runs 5 --op fwd --device soft:memory=1M
says err 'more than there is, said' 'bytes are needed'
expect 'four runs' 2 bench --runs 4
says err 'four runs, said' '--runs takes a number from 5 to 101'
expect 'no such workload' 2 bench --workload W6
says err 'no such workload, those there are' '--workload takes W1, W2, W3, W4, W5, W1-zipf1.2, W1-same, not .W6.'
expect 'no such operation' 2 bench --op frob
says err 'no such operation, those there are' '--op takes fwd, train, partition, ring, contend, save, limits'
expect 'no such optimizer' 2 bench --optimizer lion
says err 'no such optimizer, those there are' '--optimizer takes sgd, adagrad, adam'
for scale in 0 -1 1.5 nan x 0.1x; do
	expect "scale $scale" 2 bench --scale="$scale"
done
says err 'a scale, said' '--scale takes a number above 0 and at most 1'
for call in '--threads 0' '--threads 65' '--batches 0' '--batches 65' '--runs 102' '--index int16' '--seed x' frob; do
	# shellcheck disable=SC2086
	expect "$call" 2 bench $call
done

finish
