"""Several computers on one: network namespaces on a bridge, each with an address, some with a drop-inbound firewall."""

import contextlib
import secrets
import shutil
import subprocess

FIREWALL = """
table inet router {
  chain inbound {
    type filter hook input priority 0; policy drop;
    ct state established,related accept
    iif lo accept
  }
}
"""
"""The firewall of a home router: it accepts replies and silently drops all other incoming packets."""
MISSING = "packaging/system-packages.sh names the Debian packages it takes."


def why_not():
    """Why network namespaces cannot be created here; empty if they can."""
    for tool in ("ip", "nft", "tc"):
        if shutil.which(tool) is None:
            return f"there is no {tool}: {MISSING}"
    name = f"skt{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces cannot be made here ({made.stderr.strip()}): it takes root"
    try:
        ruled = subprocess.run(inside(name, "nft", "list", "ruleset"), capture_output=True, text=True, check=False)
        return ruled.stderr.strip()
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def inside(name, *command):
    """The command line that runs `command` on the computer `name`."""
    return ["ip", "netns", "exec", name, *command]


class Computers:
    """`add` creates a computer and returns its namespace and address, which is in 10.77.0.0/24.

    `public` addresses exist elsewhere; here they are reached in the namespaces only.
    """

    def __init__(self, *, public=False):
        self._network = "45.77.0" if public else "10.77.0"
        self._bridge = f"skt{secrets.token_hex(3)}"
        self._names = [self._bridge]
        run("ip", "netns", "add", self._bridge)
        run(*inside(self._bridge, "ip", "link", "add", "hub", "type", "bridge"))
        run(*inside(self._bridge, "ip", "link", "set", "hub", "up"))

    def add(self, *, firewall=False):
        number = len(self._names)
        name, address = f"{self._bridge}-{number}", f"{self._network}.{number}"
        run("ip", "netns", "add", name)
        self._names.append(name)
        run(
            "ip",
            "link",
            "add",
            "eth0",
            "netns",
            name,
            "type",
            "veth",
            "peer",
            "name",
            f"p{number}",
            "netns",
            self._bridge,
        )
        run(*inside(self._bridge, "ip", "link", "set", f"p{number}", "master", "hub", "up"))
        run(*inside(name, "ip", "link", "set", "lo", "up"))
        run(*inside(name, "ip", "address", "add", f"{address}/24", "dev", "eth0"))
        run(*inside(name, "ip", "link", "set", "eth0", "up"))
        run(*inside(name, "ip", "route", "add", "default", "dev", "eth0"))
        if firewall:
            run(*inside(name, "nft", "-f", "-"), given=FIREWALL)
        return name, address

    def plug(self, name, *, into_hub):
        """The cable of that computer: pulled out, or back in; its addresses and routes stay."""
        port, state = f"p{name.rpartition('-')[2]}", "up" if into_hub else "down"
        run(*inside(self._bridge, "ip", "link", "set", port, state))

    def limit(self, name, bits):
        """What that computer sends is at most so many bits a second, Ethernet frames."""
        shape = ("tbf", "rate", f"{bits}bit", "burst", "32kb", "latency", "100ms")
        run(*inside(name, "tc", "qdisc", "add", "dev", "eth0", "root", *shape))

    def close(self):
        for name in self._names:
            with contextlib.suppress(subprocess.CalledProcessError):
                run("ip", "netns", "delete", name)


def run(*command, given=None):
    subprocess.run(command, input=given, text=True, check=True, capture_output=True)
