#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes FOLDER/vmlinuz and FOLDER/initrd.gz: Debian's kernel of today, unpacked (never installed), and a small first
# root with the modules of soft-RoCE. The only step that needs a network; a second run takes no time.
#
#   usage: conformance/rxe/fetch.sh FOLDER
# Needs apt-get, dpkg, busybox-static, cpio. Exit: 0, or 2 with a line that says why.
set -eu
folder=$1
# In load order: CRC32 must be there before rdma_rxe, or that one fails to initialise.
modules="crc32_generic crc32-pclmul virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover
 net_failover virtio_net 9pnet 9pnet_virtio netfs fscache 9p dummy udp_tunnel ip6_udp_tunnel ib_core ib_uverbs ib_cm
 iw_cm configfs rdma_cm rdma_ucm rdma_rxe"

fail() {
    echo "rxe: $1" >&2
    exit 2
}

[ -e "$folder/vmlinuz" ] && [ -e "$folder/initrd.gz" ] && exit 0
for tool in apt-get dpkg busybox cpio; do
    command -v "$tool" >/dev/null 2>&1 || fail "$tool is missing; the guests of soft-RoCE cannot be made"
done
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$folder/.unfinished
rm -rf "$work"
mkdir -p "$work/package" "$work/first/bin" "$work/first/mods" "$work/first/r"
trap 'rm -rf "$work"' EXIT

newest() { apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }'; }
package=$(newest)
if [ -z "$package" ]; then
    apt-get -qq update >/dev/null 2>&1 || true
    package=$(newest)
fi
[ -n "$package" ] || fail "apt knows no linux-image-amd64 (apt-get update, as root?); the guests of soft-RoCE cannot be made"
echo "rxe: fetching $package"
(cd "$work/package" && apt-get -qq download "$package" && dpkg -x ./*.deb .) >"$work/log" 2>&1 ||
    fail "$package cannot be downloaded: $(tail -1 "$work/log")"
version=${package#linux-image-}

number=10
for module in $modules; do
    file=$(find "$work/package/lib/modules/$version" -name "$module.ko" | head -1)
    [ -z "$file" ] || cp "$file" "$work/first/mods/$number-$module.ko"
    number=$((number + 1))
done
[ -e "$work/first/mods/$((number - 1))-rdma_rxe.ko" ] || fail "$package has no rdma_rxe"
cp "$(command -v busybox)" "$work/first/bin/busybox"
cp "$(dirname "$0")/init" "$work/first/init"
chmod 755 "$work/first/init"
(cd "$work/first" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
mv "$work/package/boot/vmlinuz-$version" "$folder/vmlinuz"
mv "$work/initrd.gz" "$folder/initrd.gz"
