"""The world-action model: one causal transformer that predicts video latents and actions."""
