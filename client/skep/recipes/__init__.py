"""The recipes, one file each with its fields in the manifest, its tensor shapes and its model.

The engine and the app read manifests without torch: a recipe's file imports torch inside functions only.
"""
