#!/bin/sh
# Make a CA for one cluster and a certificate for each node: make-certificates.sh DIRECTORY HOST…
#
# DIRECTORY gets ca.key (keep it off the nodes), ca.pem (for nodes and clients) and HOST.pem for each host
# (private key and certificate: that node's /etc/kafka/tls/node.pem). What exists is kept, so the same
# command with one more host adds a node. DAYS, by default 825, is how long a node's certificate lasts.
set -eu
umask 077

[ $# -ge 2 ] || { echo "usage: $0 DIRECTORY HOST…" >&2; exit 2; }
directory=$1
shift
mkdir -p "$directory"
cd "$directory"

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 2>/dev/null; }

if [ ! -e ca.key ]; then
    key >ca.key
    openssl req -x509 -new -key ca.key -days 3650 -subj "/O=kafka-cluster/CN=ca" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
        -out ca.pem
    chmod 644 ca.pem
fi

for host; do
    [ ! -e "$host.pem" ] || continue
    case $host in
    *[!0-9.]*) name="DNS:$host" ;;
    *) name="IP:$host" ;;
    esac
    key >"$host.key"
    # OU=kafka-nodes is what ssl.principal.mapping.rules looks for: it makes the holder a node.
    openssl req -new -key "$host.key" -subj "/OU=kafka-nodes/CN=$host" -out "$host.csr"
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$name" >"$host.ext"
    openssl x509 -req -in "$host.csr" -CA ca.pem -CAkey ca.key -CAcreateserial \
        -days "${DAYS:-825}" -extfile "$host.ext" -out "$host.crt" 2>/dev/null
    cat "$host.key" "$host.crt" >"$host.pem"
    rm "$host.key" "$host.crt" "$host.csr" "$host.ext"
    echo "$directory/$host.pem"
done
