#!/bin/sh
# SPDX-License-Identifier: MIT
# What config prints, writes and exits with. Speaks TAP.
# usage: config.sh EMBENG-COMMAND
set -u

. "$(dirname "$0")/checks.sh"

# golden VERB NAME FILE: the bytes of a line of golden/tpu.txt
golden()
{
	python3 -c 'import sys
_, golden, verb, name, out = sys.argv
for line in open(golden, encoding="utf-8"):
    words = line.rstrip("\n").split("\t")
    if words[:2] == [verb, name]:
        open(out, "wb").write(bytes.fromhex(words[2]))' \
		"$(dirname "$0")/../golden/tpu.txt" "$1" "$2" "$folder/$3"
	[ -f "$folder/$3" ] && report ok "golden $2" || report no "golden $2"
}

same()
{
	cmp "$folder/$2" "$folder/$3" >"$folder/out" 2>"$folder/err" && report ok "$1" || report no "$1"
}

golden exact 'newer form' new.pb
golden exact 'older form' old.pb
golden exact 'both forms' both.pb
golden exact 'hot ids 1' hot.pb
golden other 'unknown fields of all types' unknown.pb
golden exact 'quantization' levels.pb
golden refused 'optimizer user_defined_program' program.pb

expect 'show' 0 config show "$folder/new.pb"
says out 'show, the file' 'TPUEmbeddingConfiguration, 2 tables, 3 features$'
says out 'show, the engine' '^replicas 8, pipelining on, hosts 2, sharding div$'
says out 'show, a table' '^items  *1099511627776  *4  mean  *sgd  *0.25$'
says out 'show, a rate' '^users  *1000  *16  mean  *adagrad  *rate_0$'
says out 'show, a feature' '^watched  items  4 x 3$'
expect 'show as JSON' 0 config show "$folder/both.pb" --json
document 'show as JSON, its schema' 'd["schema"] == "embeng.config/1" and d["command"] == "show" and d["format"] == "protobuf"'
document 'show as JSON, the model' '[t["vocabulary_size"] for t in d["tables"]] == [1000, 1 << 40] and d["features"][0]["output_shape"] == [4, 3]'
document 'show as JSON, beside the model' 'd["protobuf"]["form"] == "both" and d["protobuf"]["mode"] == "training" and d["protobuf"]["hot_ids"] == ["unspecified"] * 2'
expect 'unknown fields' 0 config show "$folder/unknown.pb"
says out 'unknown fields are named' '^field 101 of the outermost message is not known: 8 bytes at 38$'
expect 'unknown fields as JSON' 0 config show "$folder/unknown.pb" --json
document 'unknown fields, each' '[u["number"] for u in d["protobuf"]["unknown"]] == [100, 101, 102, 103, 8]'

expect 'to a model file' 0 config convert "$folder/new.pb" -o "$folder/model.json"
expect 'show a model file' 0 config show "$folder/model.json" --json
document 'a model file, no protobuf' 'd["protobuf"] is None and d["format"] == "json" and d["engine"]["hosts"] == 2'
expect 'and back' 0 config convert "$folder/model.json" -o "$folder/back.pb" --json
document 'what is lost' 'd["lost"] == ["table users: the rate'"'"'s name rate_0"] and d["to"] == "protobuf"'
same 'the same bytes' new.pb back.pb
expect 'levels to a model file' 0 config convert "$folder/levels.pb" -o "$folder/levels.json" --json
document 'levels are not lost' 'd["lost"] == []'
expect 'levels, shown' 0 config show "$folder/levels.json" --json
document 'levels, all of them' 'd["tables"][0]["quantization"] == {"num_buckets": 256, "lower": -1, "upper": 0.5}'
expect 'levels and back' 0 config convert "$folder/levels.json" -o "$folder/again.pb"
same 'levels, the same bytes' levels.pb again.pb
expect 'an older form of it' 0 config convert "$folder/both.pb" --to=protobuf --features=counts -o "$folder/counts.pb"
same 'an older form, its bytes' old.pb counts.pb
expect 'hot ids are lost' 0 config convert "$folder/hot.pb" -o "$folder/hot.json"
expect 'another verb takes it' 0 plan "$folder/hot.json"
expect 'hot ids are lost again' 0 config convert "$folder/hot.pb" -o "$folder/hot.json"
says err 'hot ids are lost and told' 'table users: the flag of hot ids'
expect 'unknown fields are lost' 0 config convert "$folder/unknown.pb" -o "$folder/unknown.json"
says err 'unknown fields are lost and told' 'this is not carried over: field 102 of the outermost message'

cat >"$folder/open.json" <<'END'
{"engine": {"hosts": 3, "sharding": "mod"},
 "tables": [{"name": "t", "vocabulary_size": 100, "dim": 8, "combiner": "sum", "out_of_range": "drop",
             "optimizer": {"kind": "ftrl", "learning_rate": 0.5, "clipvalue": 2.0}}],
 "features": [{"name": "f", "table": "t"},
              {"name": "s", "table": "t", "max_sequence_length": 5, "validate_weights_and_indices": false}]}
END
expect 'open shapes' 2 config convert "$folder/open.json" -o "$folder/no.pb"
says err 'open shapes, what to do' '--batch=N'
expect 'open shapes, a batch' 0 config convert "$folder/open.json" -o "$folder/open.pb" --batch=16 --mode=backward --profile-directory=/p --json
document 'what a protobuf does not hold' 'len(d["lost"]) == 4 and d["bytes"] > 50'
expect 'what it holds' 0 config show "$folder/open.pb" --json
document 'what it holds, shapes' '[f["output_shape"] for f in d["features"]] == [[16], [16, 5]]'
document 'what it holds, optimizer' 'd["tables"][0]["optimizer"]["clipvalue"] == [-2, 2]'
document 'what it holds, engine' 'd["engine"]["sharding"] == "mod" and d["protobuf"]["mode"] == "backward" and d["protobuf"]["profile_directory"] == "/p"'
expect 'show of it' 0 config show "$folder/open.pb"
says out 'show of it, the directory' '^profile directory /p'
expect 'its mode is lost' 0 config convert "$folder/open.pb" -o "$folder/lost.json" --json
document 'its mode and directory are lost' 'd["lost"] == ["the mode backward", "the profile directory"]'

cat >"$folder/part.json" <<'END'
{"tables": [{"name": "t", "vocabulary_size": 10, "dim": 4, "part": {"rows": 40, "first_row": 3, "row_step": 4}}],
 "features": [{"name": "f", "table": "t"}]}
END
expect 'a part of a table' 0 config show "$folder/part.json" --json
document 'a part of a table, with defaults' 'd["tables"][0]["part"] == {"rows": 40, "first_row": 3, "row_step": 4, "dim": 4, "first_column": 0}'
expect 'a part is lost' 0 config convert "$folder/part.json" -o "$folder/part.pb" --batch=2 --mode=inference --json
document 'a part is lost and told' 'd["lost"] == ["table t: the part of a larger table"]'
sed 's/"row_step": 4/"row_step": 5/' "$folder/part.json" >"$folder/wrong.json"
expect 'a part that is none' 2 config show "$folder/wrong.json"
says err 'a part that is none, by its table' 'table t: part: row_step 5 must be 1 to 4'

expect 'an optimizer that is not there' 3 config show "$folder/program.pb"
says err 'an optimizer by name' 'table_descriptor.0..optimization_parameters.user_defined_program'
head -c 30 "$folder/new.pb" >"$folder/cut.pb"
expect 'bytes cut' 11 config show "$folder/cut.pb" --json
document 'bytes cut, where' '"table_descriptor[1]: byte 27" in d["error"]["message"] and d["error"]["name"] == "EBADMSG"'
expect 'JSON said to be a protobuf' 11 config show "$folder/model.json" --from=protobuf
expect 'a protobuf said to be JSON' 2 config show "$folder/new.pb" --from=json
echo '{"tables": [], "features": [], "no": 1}' >"$folder/no.json"
expect 'a model file with another key' 2 config show "$folder/no.json"
says err 'a model file with another key, named' "unknown key 'no'"
echo '{"tables": [], "features": [], "engine": {"hosts": 3000000000}}' >"$folder/no.json"
expect 'too many hosts' 2 config show "$folder/no.json"
expect 'no such file' 2 config show "$folder/none"
expect 'no file' 2 config show
expect 'two files' 2 config show a b
expect 'two files to convert' 2 config convert a b
expect 'no file to convert' 2 config convert
expect 'no command' 2 config
expect 'no such command' 2 config print
expect 'a command behind an option' 2 config --json show
document 'a command behind an option, told' 'd["error"]["code"] == 2'
expect 'no such format' 2 config show a --from=text
expect 'no such format to make' 2 config convert a --to=text
expect 'no such form' 2 config convert a --features=no
expect 'no such mode' 2 config convert a --mode=default
expect 'no batch' 2 config convert a --batch=0
expect 'JSON on standard output twice' 2 config convert "$folder/new.pb" --json
expect 'a mode of a model file' 2 config convert "$folder/new.pb" --mode=training -o "$folder/x"
expect 'a batch of a protobuf' 2 config convert "$folder/new.pb" --to=protobuf --batch=4 -o "$folder/x"
expect 'nowhere to write' 2 config convert "$folder/new.pb" -o "$folder/none/x"
expect 'help' 0 config --help
says out 'help, a command' '^  convert FILE -o FILE'
[ -f "$folder/no.pb" ] && report no 'nothing is left' || report ok 'nothing is left'

finish
