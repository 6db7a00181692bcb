"""A Trainer with two devices, Lightning's own strategy and no swarm, whose devices step by themselves: post-local SGD.

Prints a JSON line with the parameter on both ranks after each batch.
"""

import json

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy

from skep import training

START, PERIOD = 2, 3


class Module(LightningModule):
    """Its gradient is the mean of the samples, so that each device steps in another direction."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def training_step(self, batch, _number):
        return (self.weight * (batch + self.global_rank)).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


class Drifting(Callback):
    def on_train_start(self, trainer, _module):
        options = training.PostLocalSGD(start_localSGD_iter=START, period=PERIOD)
        self.after_step = training.communicate(trainer.strategy.model, options)

    def on_train_batch_end(self, trainer, module, *_):
        self.after_step()
        found = trainer.strategy.all_gather(module.weight.detach())
        if trainer.is_global_zero:
            print(json.dumps({"event": "batch", "weights": found.flatten().tolist()}), flush=True)


if __name__ == "__main__":
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = Trainer(
        strategy=DDPStrategy(process_group_backend="gloo"),
        accelerator="cpu",
        devices=2,
        max_epochs=1,
        callbacks=[Drifting()],
        **quiet,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(20), batch_size=1))
