"""What can be trained: one file per recipe, which owns its fields in the manifest, its shapes and its model.

The engine and the app read manifests and must not load torch: a recipe's file imports it inside functions only.
"""
