#!/usr/bin/env bash
# Runs a command, and all that it starts, with a share of the processors, as a container with a limit does.
#
#   processors.sh SHARE COMMAND…    SHARE in processors: 0.25 is a quarter of one, 2 is two
#
# It makes a cgroup (version 1 or 2) for the command, which needs root. When the command ends, what it left in the group is killed and the
# group is removed. It exits as the command did, or with 69 where no such group can be made.
set -uo pipefail

# period is the time in microseconds over which the kernel enforces the limit: the one that container runtimes use.
period=100000

fail() {
	echo "signalbox: processors.sh: $1" >&2
	exit 69
}

# mounted TYPE OPTION prints where a file system of that type, with that option if one is given, is mounted.
mounted() {
	awk -v type="$1" -v option="${2:-}" '$3 == type && (option == "" || index("," $4 ",", "," option ",")) { print $2; exit }' /proc/self/mounts
}

# make_group makes the group and sets its limit to the quota in microseconds per period.
make_group() {
	local quota=$1 root
	if root=$(mounted cgroup cpu) && [ -n "${root}" ]; then
		group=${root}/signalbox-processors-$$
		mkdir "${group}" || fail "a cgroup cannot be made in ${root}; run as root, in a container that may write there."
		if ! { echo "${period}" >"${group}/cpu.cfs_period_us" && echo "${quota}" >"${group}/cpu.cfs_quota_us"; }; then
			fail "the limit of ${group} cannot be set; is the limit of the group above it lower?"
		fi
		return
	fi
	root=$(mounted cgroup2)
	[ -n "${root}" ] || fail "no cgroup file system is mounted."
	grep -qw cpu "${root}/cgroup.controllers" || fail "${root} does not control processors (cgroup.controllers lacks cpu)."
	if ! grep -qw cpu "${root}/cgroup.subtree_control"; then
		echo +cpu >"${root}/cgroup.subtree_control" ||
			fail "the groups below ${root} cannot control processors; run as root, and in a container with the host's cgroups, since a group with processes of its own has no limits below it."
	fi
	group=${root}/signalbox-processors-$$
	mkdir "${group}" || fail "a cgroup cannot be made in ${root}; run as root, in a container that may write there."
	echo "${quota} ${period}" >"${group}/cpu.max" || fail "the limit of ${group} cannot be set."
}

# remove_group kills what is left in the group and removes it. Processes leave a group some time after their death.
remove_group() {
	[ -d "${group}" ] || return 0
	for _ in $(seq 100); do
		xargs -r kill -KILL <"${group}/cgroup.procs" 2>/dev/null
		rmdir "${group}" 2>/dev/null && return
		sleep 0.05
	done
	echo "signalbox: processors.sh: ${group} has processes that do not end: $(tr '\n' ' ' <"${group}/cgroup.procs")" >&2
}

share=${1:-}
if [ $# -lt 2 ] || ! [[ ${share} =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
	echo "usage: processors.sh SHARE COMMAND…, with SHARE in processors, such as 0.25" >&2
	exit 2
fi
shift
[ "$(id -u)" = 0 ] || fail "a limit of processors needs root."
quota=$(awk -v share="${share}" -v period="${period}" 'BEGIN { printf "%d", share * period }')
[ "${quota}" -ge 1000 ] || fail "a share of ${share} is below the least that the kernel allows, 0.01."

group=""
trap '[ -z "${group}" ] || remove_group' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
make_group "${quota}"
# The input is passed on by name, because a command in the background would get none.
(
	echo "${BASHPID}" >"${group}/cgroup.procs" || fail "a process cannot be moved into ${group}."
	exec "$@"
) <&0 &
wait $!
