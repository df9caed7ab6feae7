#!/bin/sh
# SPDX-License-Identifier: MIT
# Tables spread over 1 to 4 hosts, which are threads, train to the bits of one host: each optimizer,
# combiner, with and without weights. Replicas in another order must not, or the digests see nothing.
# usage: hosts.sh EXAMPLE
set -u

example=$1
number=0
failed=0

verdict() {
	number=$((number + 1))
	[ "$1" = 0 ] || { failed=1; printf 'not '; }
	echo "ok $number - $2"
}

# digests THREADS OPTIMIZER COMBINER [WEIGHTS]: of tables and activations
digests() {
	"$example" "threads:$1" "$2" "$3" "${4:-}" | sed -n 's/ on [0-9]* hosts$//p'
}

seen=
for optimizer in sgd adagrad adam ftrl; do
	for combiner in sum mean sqrtn; do
		for weights in '' weights; do
			one=$(digests 1 $optimizer $combiner $weights)
			name="$optimizer, $combiner${weights:+, $weights}"
			case $one in "tables "*" activations "*) ;; *) verdict 1 "$name on one host" ;; esac
			seen="$seen$one
"
			for hosts in 2 3 4; do
				[ "$(digests $hosts $optimizer $combiner $weights)" = "$one" ]
				verdict $? "$name on $hosts hosts"
			done
		done
	done
	[ "$(digests 2 $optimizer sum reversed)" != "$(digests 1 $optimizer sum)" ]
	verdict $? "$optimizer, replicas in another order give other bits"
done
[ "$(printf %s "$seen" | sort -u | wc -l)" = 24 ]
verdict $? "no two settings give the same numbers"
echo "1..$number"
exit $failed
