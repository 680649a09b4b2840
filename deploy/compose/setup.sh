#!/bin/sh
# Generates the passwords and the encryption key of compose.yaml in ./secrets, or in the folder that is given. Files that exist are kept,
# so it can be repeated.
set -eu
folder=${1:-$(dirname "$0")/secrets}

# The folder keeps other users of this machine away, also if it exists already. The files are readable because the containers, each under
# its own user ID, read them through bind mounts, which are read-only.
(umask 077 && mkdir -p "$folder")
chmod 700 "$folder"
umask 022

random() { head -c 32 /dev/urandom | base64; }

# generate NAME [MODE]: a password of 256 random bits without characters that a URL or a shell treats in a special way.
generate() {
	[ -s "$folder/$1" ] && return
	random | tr '+/' '-_' | tr -d '=\n' >"$folder/$1.new"
	chmod "${2:-644}" "$folder/$1.new"
	mv "$folder/$1.new" "$folder/$1"
	echo "generated $folder/$1"
}

for name in postgres_password signalbox_owner_db_password signalbox_db_password temporal_db_password redis_password grafana_admin_password; do
	generate "$name"
done
generate redis_admin_password 600 # for people: no container reads it

if [ ! -s "$folder/encryption_key" ]; then
	random >"$folder/encryption_key.new"
	mv "$folder/encryption_key.new" "$folder/encryption_key"
	echo "generated $folder/encryption_key: keep a copy of it, without it sensitive values cannot be read any more"
fi

# hash NAME: what Redis stores of a password.
hash() { tr -d '\n' <"$folder/$1" | sha256sum | cut -d ' ' -f 1; }
sed "s/PASSWORD_SHA256/$(hash redis_password)/; s/ADMIN_SHA256/$(hash redis_admin_password)/" "$(dirname "$0")/../redis/users.acl" >"$folder/redis_users"
