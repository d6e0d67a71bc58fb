"""Action policies that run on a server, over the wires that such servers speak; and our own server.

`openpi` and `dreamzero` are msgpack over a websocket, `gr00t` is msgpack over ZMQ. What is sent and
what comes back is described by an embodiment file (`embodiment`), and nothing that comes back moves
an arm before `actions` has checked it.
"""
