/* A stand-in for NVIDIA's libnvidia-ml.so.1: as many cards as NVML_STUB_CARDS says (1 when unset), at PCI addresses
 * 0000:01:00.0, 0000:02:00.0 and so on. Each call whose name is in the environment with a number returns that error,
 * so nvmlInitWithFlags=18 is a driver that no longer matches its library; card 0 alone fails to open with
 * NVML_STUB_FIRST_CARD=15. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } utilisation_t;
typedef struct { unsigned int version, sensor; int degrees; } temperature_t;
typedef struct {
    char legacy_address[16];
    unsigned int domain, bus, device, id, subsystem;
    char address[32];
} pci_t;

static int asked(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

#define FAIL_IF_ASKED() do { int code = asked(__func__); if (code) return code; } while (0)

int nvmlInitWithFlags(unsigned int flags) { (void)flags; FAIL_IF_ASKED(); return 0; }
int nvmlShutdown(void) { FAIL_IF_ASKED(); return 0; }

int nvmlSystemGetDriverVersion(char *text, unsigned int size) {
    FAIL_IF_ASKED();
    snprintf(text, size, "570.86.15");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    FAIL_IF_ASKED();
    *count = getenv("NVML_STUB_CARDS") ? (unsigned)asked("NVML_STUB_CARDS") : 1;
    return 0;
}

/* A handle is the card's number plus one, so that it is never null. */
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    FAIL_IF_ASKED();
    if (index == 0 && asked("NVML_STUB_FIRST_CARD")) return asked("NVML_STUB_FIRST_CARD");
    *handle = (void *)(size_t)(index + 1);
    return 0;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned int size) {
    FAIL_IF_ASKED();
    snprintf(text, size, "Stand-in RTX %zu", (size_t)handle);
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    (void)handle;
    FAIL_IF_ASKED();
    *major = getenv("NVML_STUB_MAJOR") ? asked("NVML_STUB_MAJOR") : 8;
    *minor = 5;
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    (void)handle;
    FAIL_IF_ASKED();
    memory->total = 24ULL << 30;
    memory->free = 20ULL << 30;
    memory->used = 4ULL << 30;
    return 0;
}

int nvmlDeviceGetTemperatureV(void *handle, temperature_t *temperature) {
    (void)handle;
    FAIL_IF_ASKED();
    temperature->degrees = 61;
    return 0;
}

int nvmlDeviceGetTemperature(void *handle, unsigned int sensor, unsigned int *degrees) {
    (void)handle; (void)sensor;
    FAIL_IF_ASKED();
    *degrees = 62;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts) {
    (void)handle;
    FAIL_IF_ASKED();
    *milliwatts = 187500;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *handle, utilisation_t *use) {
    (void)handle;
    FAIL_IF_ASKED();
    use->gpu = 37;
    use->memory = 12;
    return 0;
}

int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *pci) {
    FAIL_IF_ASKED();
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned)(size_t)handle;
    snprintf(pci->address, sizeof pci->address, "00000000:%02X:00.0", pci->bus);
    return 0;
}
