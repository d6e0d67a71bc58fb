"""Opens a dataset with the real lerobot package and prints what it finds: DATASET OUT.npz.

A program of its own: lerobot brings half a machine-learning stack into the process.
"""

import json
import sys

import numpy as np

try:
    import torchvision  # noqa: F401
except (ImportError, RuntimeError):
    # Its compiled operators are of another torch. lerobot uses but Python parts of it (the reader
    # of videos by way of PyAV), which import once the operator that they mention is declared.
    import torch

    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from lerobot.datasets.lerobot_dataset import LeRobotDataset  # noqa: E402
from lerobot.datasets.utils import dataset_to_policy_features  # noqa: E402

root, out = sys.argv[1:]
dataset = LeRobotDataset("local/demonstrations", root=root, video_backend="pyav")
raw = dataset.hf_dataset.with_format(None)[:]  # as stored: torch and numpy get 32 bits
arrays = {key: np.asarray(raw[key]) for key in raw}
cameras = dataset.meta.camera_keys
items = [dataset[k] for k in range(len(dataset))]
for camera in cameras:
    arrays[camera] = np.stack([item[camera].numpy() for item in items])
arrays["item_state"] = np.stack([item["observation.state"].numpy() for item in items])
np.savez(out, **arrays)

steps = [0.0, 1 / dataset.fps, 2 / dataset.fps]
ahead = LeRobotDataset(
    "local/demonstrations", root=root, video_backend="pyav", episodes=[1],
    delta_timestamps={"action": steps},
)  # fmt: skip
json.dump({
    "fps": dataset.fps, "frames": len(dataset), "episodes": dataset.meta.total_episodes,
    "cameras": cameras, "tasks": [item["task"] for item in items],
    "policy_features": {
        key: [feature.type.value, list(feature.shape)]
        for key, feature in dataset_to_policy_features(dataset.features).items()
    },
    "stats": {
        key: {name: np.ravel(value).tolist() for name, value in found.items()}
        for key, found in dataset.meta.stats.items()
    },
    "ahead": ahead[3]["action"].tolist(),
}, sys.stdout)  # fmt: skip
