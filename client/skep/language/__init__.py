"""Translation of messages to English or German. For front ends, and for logs and reports in English."""
