"""Translation of messages to English or German. Only front ends import this package."""
