"""A Linux desktop: D-Bus services, X servers, Wayland compositors."""
