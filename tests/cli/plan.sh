#!/bin/sh
# SPDX-License-Identifier: MIT
# What plan prints and exits with. Speaks TAP.
# usage: plan.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

# In Python: bytes of the last document, by kind
kinds='{k: sum(i["bytes"] for i in d["items"] if i["kind"] == k) for k in ("table", "slot", "input", "activations", "gradients", "engine", "row access")}'

expect 'a table' 0 plan --table users:1000x4:adagrad -b 100 --depth 4 --cores 1
says out 'a table, its bytes' '^table  *users parameters  *16000  *15.6 KiB$'
says out 'a table, its slot' '^slot  *users accumulators  *16000  *15.6 KiB$'
says out 'a table, its feature' '^gradients  *users  *8000  *7.8 KiB$'
says out 'fits' '^table memory of the device: 31.2 KiB of .*, fits$'
says out 'fits the machine' '^available memory of the machine: .*, fits$'

expect 'a table, JSON' 0 plan --table users:1000x4:adagrad -b 100 --depth 4 --cores 1 --json
document 'a table, document' 'd["schema"] == "embeng.plan/1" and d["fits"] and d["table_bytes"] == 32000'
document 'items are the totals' "(lambda k: k['table'] + k['slot'] == d['table_bytes'] and k['engine'] == d['engine_bytes'] and sum(k.values()) == d['total_bytes'])($kinds)"
document 'activations by hand' "($kinds)['activations'] == 5 * 4096"
document 'what was supposed' 'd["cores"] == 1 and d["step_depth"] == 4'

expect 'optimizers' 0 plan --table a:10x1 --table b:10x1:none --table c:10x1:adam --table d:1kx1:ftrl --json
document 'optimizers, slots' '[(i["table"], i["slot"], i["bytes"]) for i in d["items"] if i["kind"] == "slot"] == [("c", "momenta", 40), ("c", "velocities", 40), ("d", "accumulators", 4000), ("d", "linears", 4000)]'
document 'a feature each' '{i["feature"] for i in d["items"]} == {"a", "b", "c", "d", None}'
expect 'features' 0 plan --table a:10x2 --feature f:a --feature s:a:5 -b 100 --depth 4 --json
document 'features, sequences' '[(i["feature"], i["bytes"]) for i in d["items"] if i["kind"] == "gradients"][:2] == [("f", 4000), ("s", 20000)]'
expect 'buffers' 0 plan --table a:10x2 -b 100 --depth 4 --buffers --json
document 'buffers, no copies' '[i["bytes"] for i in d["items"] if i["kind"] == "gradients" and i["feature"]] == [0]'
expect 'offsets copied' 0 plan --table a:10x2 -b 100 --depth 4 --buffers --json
document 'offsets copied' '[i["bytes"] for i in d["items"] if i["kind"] == "input" and i["feature"]] == [5 * 8 * 101]'
expect 'splits' 0 plan --table a:10x2 -b 100 --depth 4 --buffers --splits --json
document 'splits, no offsets' '[i["bytes"] for i in d["items"] if i["kind"] == "input" and i["feature"]] == [0]'
expect 'twice the replicas' 0 plan --table a:10x2 -b 100 --depth 4 --replicas 2 --json
document 'twice the replicas, twice the gradients' '[i["bytes"] for i in d["items"] if i["kind"] == "gradients" and i["feature"]] == [8000]'
expect 'inference alone' 0 plan --table a:10x2:none -b 100 --depth 4 --json
document 'inference alone, no gradients' "($kinds)['gradients'] == 0 and ($kinds)['activations'] > 0"
expect 'thirty cores' 0 plan --table a:10x2 --cores 30 --json
document 'thirty cores' 'd["cores"] == 30'

cat >"$folder/model.json" <<'END'
{"engine": {"replicas": 2, "cores": 3},
 "tables": [{"name": "t", "vocabulary_size": 100, "dim": 8, "optimizer": {"kind": "adam"}}],
 "features": [{"name": "f", "table": "t", "output_shape": [4, 5]}]}
END
expect 'a file' 0 plan "$folder/model.json" --depth 4 --json
document 'a file, its table' '[i["bytes"] for i in d["items"] if i["kind"] == "table"] == [3200]'
document 'a file, its shape and replicas' '[i["bytes"] for i in d["items"] if i["kind"] == "gradients" and i["feature"]] == [10 * 20 * 8 * 4]'
document 'a file, its cores' 'd["cores"] == 3'
expect 'a file and the call' 0 plan "$folder/model.json" --depth 4 --replicas 1 --cores 1 --json
document 'the call comes first' 'd["cores"] == 1 and [i["bytes"] for i in d["items"] if i["kind"] == "gradients" and i["feature"]] == [3200]'
expect 'a vector' 0 plan "$(dirname "$0")/../vectors/train/slots_given.json"

for i in $(seq 60); do
	echo "w$((i % 6)) w$(((i + 1) % 6)) w$(((i + 2) % 6)) w$(((i + 3) % 6))"
done >"$folder/baskets.txt"
expect 'a training is saved' 0 train "$folder/baskets.txt" --min-count 1 --epochs 1 --dim 8 \
	--save "$folder/saved"
expect 'a checkpoint' 0 plan --checkpoint "$folder/saved" -b 10 --depth 4 --json
document 'a checkpoint, its tables' '{i["bytes"] for i in d["items"] if i["kind"] in ("table", "slot")} == {6 * 8 * 4} and d["table_bytes"] == 4 * 192'
expect 'no checkpoint' 2 plan --checkpoint "$folder/nothing"
says err 'no checkpoint, said' 'nothing'

expect 'more than the device has' 1 plan -d soft:memory=1M --table t:1Mx1
says out 'more than the device has, said' '^table memory of the device: 3.8 MiB of 1.0 MiB, does NOT fit$'
says out 'what else fits, said' '^available memory of the machine: .*, fits$'
expect 'more than the machine has' 1 plan -d soft:memory=4G --table t:1000Gx1 --json
document 'more than the machine has, document' 'not d["fits"] and not d["fits_machine"] and not d["fits_device"]'
expect 'as much as the device has' 0 plan --table t:4x4096 --replicas 64 --depth 8 -b 1 --json
document 'as much as the device has, document' 'd["fits"] and d["beyond"] == []'
expect 'more replicas than the device has' 1 plan --table t:4x4 --replicas 65
says out 'more replicas than the device has, said' '^replicas: 65, the device has 64, does NOT fit$'
expect 'more replicas than a device, over hosts' 0 plan --table t:64x4:sgd --replicas 65 --hosts 2 -b 1 --ids 1
says out 'rows of all tables are spread for them' 'not allowed: the model has more replicas than a device'
expect 'more replicas than all hosts' 1 plan --table t:64x4:sgd --replicas 65537 --hosts 2 -b 1 --ids 1
says out 'more replicas than all hosts, said' '^replicas: 65537, all hosts together have 65536, does NOT fit$'
expect 'more steps than the device has' 1 plan --table t:4x4 --depth 9 --json
document 'more steps than the device has, document' 'not d["fits"] and not d["fits_device"] and d["beyond"] == [{"limit": "step depth", "needed": 9, "most": 8}]'
expect 'wider rows than the device has' 1 plan --table t:4x4097
says out 'wider rows than the device has, said' '^dim of table t: 4097, the device has 4096, does NOT fit$'
expect 'wider rows of one table' 1 plan --table thin:4x4096 --table wide:4x5000 --json
document 'wider rows of one table, document' 'd["beyond"] == [{"limit": "dim", "table": "wide", "needed": 5000, "most": 4096}]'
for dim in 4096 4097; do
	sed "s/\"dim\": 8/\"dim\": $dim/" "$folder/model.json" >"$folder/wide.json"
	expect "a file with dim $dim" $((dim - 4096)) plan "$folder/wide.json"
	expect "a protobuf with dim $dim" 0 config convert "$folder/wide.json" -o "$folder/wide.pb"
	expect "JSON of a protobuf with dim $dim" 0 config convert "$folder/wide.pb" -o "$folder/again.json"
	expect "the same file with dim $dim" $((dim - 4096)) plan "$folder/again.json"
done
says out 'a protobuf with wider rows, said' '^dim of table t: 4097, the device has 4096, does NOT fit$'
sed 's/"replicas": 2/"replicas": 65/' "$folder/model.json" >"$folder/replicas.json"
expect 'replicas of a file' 1 plan "$folder/replicas.json"
says out 'replicas of a file, said' '^replicas: 65, the device has 64, does NOT fit$'
expect 'more than 64 bits' 2 plan --table t:1000000Gx4294967295
says err 'more than 64 bits, table' 'table t'

# W1 of docs/performance.md: 8 tables, a replica of 4096 samples of 20 ids on each host
w1=
for t in 0 1 2 3 4 5 6 7; do
	w1="$w1 --table w$t:1Mx64:adagrad"
done
expect 'eight hosts' 0 plan $w1 --hosts 8 --link 100G -b 4096 --ids 20
says out 'eight hosts, replicas' '^8 hosts, 8 replicas, 4096 samples'
says out 'eight hosts, the exchange' '^  whole table  .* 8\.00  chosen$'
says out 'eight hosts, the others' '^  rows + gradients  .* MiB'
says out 'eight hosts, an owner' '^  owner: host 7$'
says out 'eight hosts, assumptions' '^Assumptions: links of 100 Gb/s each way, of which large messages reach 80 %;$'
says out 'eight hosts, memory' '^Memory of host 0, which needs the most (most/mean 1.00):$'
says out 'eight hosts, fit' '^table memory of the device: .* fits$'
expect 'eight hosts, JSON' 0 plan $w1 --hosts 8 -b 4096 --ids 20 --json
document 'each table has a host' 'sorted(t["parts"][0]["host"] for t in d["tables"]) == list(range(8)) and {t["chosen"] for t in d["tables"]} == {"table"}'
document 'bytes by hand' '[(e["ids_bytes"], e["forward_bytes"], e["backward_bytes"]) for e in d["tables"][0]["exchanges"]][0] == (7 * (81920 * 8 + 4097 * 8 + 32), 7 * 4096 * 256, 7 * (4096 * 256 + 8))'
document 'rows by hand' 'abs(d["tables"][0]["rows"] - 1e6 * (1 - (1 - 1e-6) ** 81920)) < 1'
document 'sums' 'd["sent_bytes"] == sum(h["sent_bytes"] for h in d["each_host"]) == sum(h["received_bytes"] for h in d["each_host"])'
document 'messages' 'd["messages"] == sum(h["messages"] for h in d["each_host"]) == 3 * 8 * 7 * 2'
document 'the link, by default' 'd["link"]["bits_per_second"] == 1e11 and d["link"]["share"] == 0.8'
document 'milliseconds' 'abs(d["ms"] - (8e3 * max(h["sent_bytes"] for h in d["each_host"]) / 8e10 + 0.03 + 0.0015 * 42)) < 0.01'
expect 'a slower link' 0 plan $w1 --hosts 8 --link 1G -b 4096 --ids 20 --json
document 'a slower link, milliseconds' '140 < d["ms"] < 260'
expect 'rows that repeat' 0 plan --table t:1Mx128:adagrad --hosts 64 --zipf 1.05 -b 4096
says out 'rows that repeat, said' '^  rows  .* chosen$'
says out 'rows that repeat, the law' '^  (rows asked for by a Zipf law of 1.05)$'
says out 'rows that repeat, balance' '^  most over mean of rows: 1\..* (MOD),$'
expect 'rows by name' 0 plan $w1 --table f:10x4:none --hosts 8 -b 4096 --ids 20 --exchange rows
says out 'rows by name, said' '^  chosen: rows, by --exchange$'
expect 'rows and gradients by name' 0 plan $w1 --table f:10x4:none --hosts 8 --exchange rows-gradients --json
document 'rows and gradients by name, each that allows it' '[t["chosen"] for t in d["tables"]] == ["rows_gradients"] * 8 + ["rows"]'
expect 'tables by name' 0 plan --table t:1Mx128:adagrad --hosts 64 --zipf 1.05 -b 4096 --exchange table --json
document 'tables by name, columns' 'd["tables"][0]["chosen"] == "column" and d["fullest_host"] in {p["host"] for p in d["tables"][0]["parts"]}'
expect 'columns' 0 plan --table t:16Mx40 --table u:10x4 --hosts 4 -b 16k --ids 50 --zipf 1.05
says out 'columns, owners' '^  columns 16 to 39: host [0-3]$'
expect 'rows of a large table' 0 plan --table t:16Mx64:rowwise_adagrad --hosts 2 -b 16k --ids 50
says out 'rows of a large table, said' '^  chosen: rows, since the table is larger than a host.s share and cannot be cut$'
says out 'rows of a large table, why' '^  by columns: its optimizer has a slot of one number a row$'
expect 'rows of a large table, JSON' 0 plan --table t:16Mx64:rowwise_adagrad --hosts 2 -b 16k --ids 50 --json
document 'rows of a large table, document' 'd["tables"][0]["too_large"] and d["tables"][0]["chosen"] == "rows"'
expect 'a row that stays whole' 0 plan --table t:16Mx64:rowwise_adagrad --hosts 2 -b 16k --ids 50 --exchange table
says out 'a row that stays whole, said' '^  it stays whole: its optimizer has a slot of one number a row$'
expect 'one host' 0 plan $w1 --hosts 1
says out 'one host, said' '^One host has all tables: nothing travels\.$'
expect 'one host, JSON' 0 plan $w1 --hosts 1 --json
document 'one host, no bytes' 'd["sent_bytes"] == 0 and d["messages"] == 0 and d["ms"] == 0 and {t["chosen"] for t in d["tables"]} == {"none"}'
expect 'replicas of the call' 0 plan $w1 --hosts 8 --replicas 16 --json
document 'replicas of the call, on hosts' '[h["replicas"] for h in d["each_host"]] == [2] * 8'
expect 'replicas of a file' 0 plan "$folder/model.json" --hosts 4 --json
document 'replicas of a file, two hosts have none' 'sum(h["replicas"] for h in d["each_host"]) == d["replicas"] == 2'
mkdir "$folder/profile"
expect 'an empty profile' 0 plan --table t:1000x8 --hosts 2 --profile "$folder/profile" --json
document 'an empty profile, no counts' 'd["tables"][0]["popularity"] == "uniform" and d["tables"][0]["counted_rows"] == 0'
expect 'no profile' 2 plan --table t:1000x8 --hosts 2 --profile "$folder/no"
says err 'no profile, said' "$folder/no"
expect 'more hosts than a device has replicas' 0 plan --table t:1000x8 --hosts 100 --json
document 'rows of all tables are spread then' 'd["fits"] and d["tables"][0]["chosen"].startswith("rows")'
expect 'wide rows in parts' 0 plan --table t:1Mx4800 --hosts 2 --ids 50 --json
document 'wide rows in parts, document' 'd["fits"] and d["tables"][0]["chosen"] == "column"'
expect 'more than hosts have' 1 plan -d soft:memory=1M --table t:1Mx64 --hosts 2
says out 'more than hosts have, said' '^table memory of the device: 122.1 MiB of 1.0 MiB, does NOT fit$'
for call in '--hosts 0' '--hosts 4097' '--hosts x' '--hosts 2 --link 0' '--hosts 2 --link fast' '--hosts 2 --zipf 9' '--hosts 2 --zipf -1' '--hosts 2 --zipf nan' '--hosts 2 --zipf x' '--hosts 2 --exchange columns'; do
	expect "plan $call" 2 plan --table t:1x1 $call
	says err "plan $call, said" "not '${call##* }'"
done
for option in '--link 1G' '--zipf 1' '--profile x' '--exchange rows'; do
	expect "only $option" 2 plan --table t:1x1 $option
	says err "only $option, said" "${option%% *} is about several hosts: give --hosts, too"
done
expect 'hosts and more than 64 bits' 2 plan --table t:1000000Gx4294967295 --hosts 2
says err 'hosts and more than 64 bits, table' 'table t: more bytes than 64 bits count'

expect 'no model' 2 plan
says err 'no model, said' 'give a file, --checkpoint, or --table'
expect 'no model, JSON' 2 plan --json
document 'no model, document' 'd["schema"] == "embeng.plan/1" and d["error"]["code"] == 2'
expect 'two models' 2 plan "$folder/model.json" --table t:1x1
expect 'a file and a checkpoint' 2 plan "$folder/model.json" --checkpoint "$folder"
expect 'two files' 2 plan "$folder/model.json" "$folder/model.json"
# A refusal must quote the option, or say that its name is empty.
named() {
	case $1 in
	:*) echo 'the name is empty' ;;
	*) echo "$1" ;;
	esac
}
for table in t t:1 t:x1 t:1x t:0x1 t:1x0 t:1x1:frob t:1x1:sgd:1 t:1zx1 t:9999999999999999999x1 :1x1; do
	expect "table $table" 2 plan --table "$table"
	says err "table $table, said" "$(named "$table")"
done
expect 'an optimizer that is none' 2 plan --table users:10Mx64:columnwise_adagrad
says err 'an optimizer that is none, said' "users.*no optimizer 'columnwise_adagrad'; there are sgd, adagrad"
for feature in f f: f:u f:t:0 f:t:x f:t:1:1 :t; do
	expect "feature $feature" 2 plan --table t:1x1 --feature "$feature"
	says err "feature $feature, said" "$(named "${feature%:u}")"
done
expect 'a table that is none' 2 plan --table t:1x1 --feature clicks:users
says err 'a table that is none, said' 'feature clicks: there is no table users'
expect 'a name twice' 2 plan --table t:1x1 --table t:1x1
expect 'a batch of none' 2 plan --table t:1x1 --batch 0
says err 'a batch of none, said' '--batch takes a count from 1'
expect 'a batch too large' 2 plan --table t:1x1 --batch 4G --ids 4G
expect 'too many cores' 2 plan --table t:1x1 --cores 65
expect 'no file' 2 plan "$folder/nothing.json"
says err 'no file, said' 'nothing.json: cannot be read'
echo '{"tables": [], "features": [], "frob": 1}' >"$folder/bad.json"
expect 'an unknown key' 2 plan "$folder/bad.json"
says err 'an unknown key, said' "unknown key 'frob'"
echo '[]' >"$folder/bad.json"
expect 'a list' 2 plan "$folder/bad.json"
echo '{"tables": [{"name": "t", "vocabulary_size": 0, "dim": 1}], "features": []}' >"$folder/bad.json"
expect 'a model that is none' 2 plan "$folder/bad.json"
says err 'a model that is none, said' 'vocabulary_size 0'
echo '{"tables": [], "features": [], "engine": {"cores": 99}}' >"$folder/bad.json"
expect 'cores of a file' 2 plan "$folder/bad.json"
expect 'no such device' 6 plan -d nowhere --table t:1x1

finish
