# make bimanual   set up what is missing, then run the bimanual evaluation (ARGS="name:=value ...")
# make policies   set up, and add what learned policies and their data need (torch and more)
# make test       the same, then run the tests; make test-slow: the slow ones too
# make lint       ruff and pyright
# make franka     set up, add the vendor's driver for Franka arms (docs/franka.md)
# make franka-sim the same and simulated Franka arms that speak the vendor's protocol
# make unitree    what talks to a Unitree G1, and its stand-in (docs/unitree.md)
# make setup      only the set-up; make clean removes all it made
# PYTHON=/path/to/python3 chooses the interpreter (3.10 to 3.13).

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))' \
	2>/dev/null && { echo $$p; break; }; done)
PROVISION = $(if $(PYTHON),$(PYTHON) ros_ws/provision,echo "no Python 3.10 to 3.13 found: install one (Debian: apt-get install python3 python3-venv python3-dev) or give its path, make PYTHON=..." >&2; exit 1;)

.PHONY: setup policies franka franka-sim unitree bimanual test test-slow lint clean

setup:
	@$(PROVISION) run

policies:
	@$(PROVISION) test

franka:
	@$(PROVISION) franka

franka-sim: franka
	@$(PROVISION) franka_sim

unitree:
	@$(PROVISION) unitree

bimanual: setup
	@ros_ws/ros2 launch bench_tasks bimanual.launch.py $(ARGS)

test:
	@$(PROVISION) test
	@.venv/bin/python -m pytest -m "not slow and not gpu and not hardware" $(ARGS)

test-slow:
	@$(PROVISION) test
	@.venv/bin/python -m pytest -m "not gpu and not hardware" $(ARGS)

lint:
	@$(PROVISION) run
	@.venv/bin/ruff check .
	@.venv/bin/pyright

clean:
	rm -rf .venv .stamps ros_ws/build ros_ws/install ros_ws/log build *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
