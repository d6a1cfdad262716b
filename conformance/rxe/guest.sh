#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in one Linux guest, or in two that are joined by a link, each with a soft-RoCE device. The host needs
# no RDMA, no KVM and no root.
#
#   usage: conformance/rxe/guest.sh [-k FOLDER] [-n 1|2] [-o OUT] [-m MIB] [-t SECONDS] COMMAND [ARGUMENT...]
#     -k  folder with vmlinuz and initrd.gz (conformance/rxe/fetch.sh makes it; build/deps/rxe)
#     -n  guests (1)
#     -o  folder that the guests see at $OUT, writable, nothing cached (a temporary one)
#     -m  memory of a guest in MiB (768)
#     -t  everything ends after that many seconds (120)
# The command sees the host's root, read-only, in the present folder. NODE is 1 or 2, SELF and PEER are addresses, rxe0
# is the device on SELF. Of two guests every frame lands in OUT/wire.pcap. Exit: that of the command in guest 1 (guest
# 2: OUT/rc.2), 124 if it did not end in time, 2 usage, 77 with the reason if something is missing here.
set -euo pipefail
kernel=build/deps/rxe
nodes=1
out=
memory=768
limit=120
while getopts k:n:o:m:t: option; do
    case $option in
    k) kernel=$OPTARG ;;
    n) nodes=$OPTARG ;;
    o) out=$OPTARG ;;
    m) memory=$OPTARG ;;
    t) limit=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ $# -eq 0 ] || [ "$nodes" != 1 ] && [ "$nodes" != 2 ]; then
    sed -n '/usage:/,/COMMAND/s/^# *//p' "$0" >&2
    exit 2
fi

skip() {
    echo "rxe: SKIP: $1"
    exit 77
}
command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86_64 is missing (Debian: qemu-system-x86)"
command -v rdma >/dev/null || skip "rdma is missing (Debian: iproute2)"
compgen -G '/usr/lib/*/libibverbs/librxe-rdmav*.so' >/dev/null || skip "rxe's provider is missing (Debian: ibverbs-providers)"
[ -e "$kernel/vmlinuz" ] && [ -e "$kernel/initrd.gz" ] || skip "no guest kernel in $kernel (make deps-check fetches it)"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$(realpath -m "${out:-$scratch/out}")
mkdir -p "$out"
rm -f "$out"/rc.* "$out/wire.pcap"

# What a guest runs. The command travels in a file, quoted, so that nothing in it can be taken for something else.
{
    echo 'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run OUT=/run/out'
    echo 'export NODE=$(sed "s/.*node=//" /proc/cmdline)'
    echo 'export SELF=10.7.0.$NODE PEER=10.7.0.$((3 - NODE))'
    echo 'ulimit -l unlimited' # or memory cannot be registered
    echo 'ip link set lo up'
    echo '[ -e /sys/class/net/eth0 ] || ip link add eth0 type dummy'
    echo 'ip address add $SELF/24 dev eth0; ip link set eth0 up'
    echo 'rdma link add rxe0 type rxe netdev eth0 || echo "guest: no rxe0"'
    # The GID follows the address after a moment; without it nothing can connect.
    echo 'for i in $(seq 100); do grep -q ffff:0a07 /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null && break; sleep 0.05; done'
    printf 'cd %q\n' "$PWD"
    printf '%q ' "$@"
    echo
    echo 'echo $? >/run/out/rc.$NODE'
} >"$out/.guest"

# KVM only on request: some hosts have a /dev/kvm that hangs ordinary guests.
accelerator=tcg,thread=multi
[ "${MOONCHECK_KVM:-}" = 1 ] && accelerator=kvm
guest() { # number, further arguments of QEMU
    local number=$1
    shift
    timeout "$limit" qemu-system-x86_64 -accel "$accelerator" -cpu max -m "$memory" -smp 1 -nographic -no-reboot \
        -kernel "$kernel/vmlinuz" -initrd "$kernel/initrd.gz" \
        -append "console=ttyS0 quiet panic=-1 net.ifnames=0 node=$number" \
        -virtfs local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap \
        -virtfs local,path="$out",mount_tag=out,security_model=none,multidevs=remap "$@" </dev/null 2>&1 |
        tr -d '\r' | sed -n "/guest: up/,\$ { s/.*\(guest: up\)/\1/; s/^/[$number] /; p }"
}
if [ "$nodes" = 1 ]; then
    guest 1 -net none || true
else # datagrams over unix sockets: a TCP link would add 20 to 50 ms a round trip
    link() { # own socket, the other's, last byte of the MAC
        echo "-netdev dgram,id=n0,local.type=unix,local.path=$scratch/$1,remote.type=unix,remote.path=$scratch/$2" \
            "-device virtio-net-pci,netdev=n0,mac=52:54:00:00:00:$3"
    }
    # shellcheck disable=SC2046
    guest 2 $(link b a 02) &
    second=$!
    # shellcheck disable=SC2046
    guest 1 $(link a b 01) -object "filter-dump,id=f0,netdev=n0,file=$out/wire.pcap" || true
    wait $second || true
fi
[ -e "$out/rc.1" ] || exit 124
exit "$(cat "$out/rc.1")"
