"""`ros2 service list|call`."""

from __future__ import annotations

import argparse
import time
from typing import Any

from launch.errors import LaunchError

from small_ros2.messages import fill, service_class, values_of
from small_ros2.packages import choices

__all__ = ["add_parser"]

FIRST_S, SEEN_S = 8.0, 2.0
"""How long the first service is waited for: a busy machine needs seconds. And how long the next."""
EVERY_NODES = ("rcl_interfaces/", "type_description_interfaces/")
"""Types of the services that every node has, for its parameters and messages."""


def _services(this: Any, wanted: str = "") -> dict[str, str]:
    """Service -> type, once `wanted` is among them, or nothing new comes."""
    found: dict[str, str] = {}
    end = time.monotonic() + FIRST_S
    while True:
        kinds = this.get_service_names_and_types()
        now = {name: types[0] for name, types in kinds if not types[0].startswith(EVERY_NODES)}
        if set(now) - set(found):
            end = time.monotonic() + SEEN_S
        found |= now
        if wanted in now or time.monotonic() > end:
            return found
        time.sleep(0.05)


def _call(args: argparse.Namespace) -> int:
    import rclpy  # loading DDS takes its time

    from small_ros2.topic_run import node

    kind = service_class(args.type)
    request = fill(kind.Request(), values_of(args.values))
    name = f"/{args.service.lstrip('/')}"
    with node("small_ros2_service_call") as this:
        found = _services(this, name)
        if name not in found:
            raise LaunchError(
                f"service '{name}' not seen; there are: {choices(found)}"
            )
        if found[name] != args.type:
            raise LaunchError(f"'{name}' is {found[name]}, not {args.type}")
        client = this.create_client(kind, name)
        if not client.wait_for_service(SEEN_S):
            raise LaunchError(f"service '{name}' does not answer")
        print(f"requester: making request: {request!r}\n", flush=True)
        answer = client.call_async(request)
        while rclpy.ok() and not answer.done():
            rclpy.spin_once(this, timeout_sec=0.2)
        if not answer.done():
            return 130
        print(f"response:\n{answer.result()!r}\n", flush=True)
    return 0


def _list(args: argparse.Namespace) -> int:
    from small_ros2.topic_run import node

    with node("small_ros2_service_list") as this:
        for name, kind in sorted(_services(this).items()):
            print(f"{name} [{kind}]" if args.show_types else name)
    return 0


def add_parser(commands: Any) -> None:
    """Add the command."""
    service = commands.add_parser("service", help="list services, and call them")
    verbs = service.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="list services")
    listing.add_argument("-t", "--show-types", action="store_true")
    listing.set_defaults(run=_list)
    call = verbs.add_parser("call", help="call a service and print what it answers")
    call.add_argument("service")
    call.add_argument("type", help="like std_srvs/srv/Trigger")
    call.add_argument("values", nargs="?", default="", help="of the request's fields, as YAML")
    call.set_defaults(run=_call)
