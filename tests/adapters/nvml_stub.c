/* A stand-in for NVIDIA's libnvidia-ml.so.1: as many cards as NVML_STUB_CARDS says (1 when unset), at PCI addresses
 * 0000:01:00.0, 0000:02:00.0 and so on. Each call whose name is in the environment with a number returns that error,
 * so nvmlInitWithFlags=18 is a driver that no longer matches its library; card 0 alone fails to open with
 * NVML_STUB_FIRST_CARD=15.
 *
 * A test changes a card while it is in use through the file named by NVML_STUB_FILE, a line for each word and its number,
 * read again at every call. The calls above are words as well; the others are:
 *   temperature 61        degrees; or, for a card that heats up:
 *   share 100, ambient 35, rise 50, rate 1
 *                         percent of the time in which it computes; from ambient, its temperature approaches
 *                         ambient + rise * share by `rate` degrees a second
 *   used 4096, fills 0    MiB in use, and MiB a second that are added to them
 *   clock 12              seconds, instead of the real time
 *   busy 37, power 187500 percent and milliwatts
 *   process PID SM STAMP  use by one process in percent, at this time stamp; as many as there are lines
 *   running PID           a process that computes on the card
 *   lost 1                the card has fallen off the bus
 *   cards 2               instead of NVML_STUB_CARDS
 * A word of the second card alone ends in 2, as in "temperature2 80", that of the third in 3.
 * The power limits that were set are kept in files beside it, whose names end in .limit, .limit2 and so on, so that they
 * outlive a process. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } utilisation_t;
typedef struct { unsigned int version, sensor; int degrees; } temperature_t;
typedef struct {
    char legacy_address[16];
    unsigned int domain, bus, device, id, subsystem;
    char address[32];
} pci_t;

static FILE *open_file(const char *suffix, const char *mode) {
    const char *name = getenv("NVML_STUB_FILE");
    char path[4096];
    if (!name) return NULL;
    snprintf(path, sizeof path, "%s%s", name, suffix);
    return fopen(path, mode);
}

static double told(const char *name, double otherwise) {
    char line[256], word[128];
    double value, found = otherwise;
    FILE *file = open_file("", "r");
    if (!file) return otherwise;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%127s %lf", word, &value) == 2 && !strcmp(word, name)) found = value;
    fclose(file);
    return found;
}

/* The value of the card behind `handle`: its own, or that of all. */
static double told_of(void *handle, const char *name, double otherwise) {
    char own[128];
    snprintf(own, sizeof own, "%s%zu", name, (size_t)handle);
    return told(own, told(name, otherwise));
}

static int asked(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : (int)told(name, 0);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return told("clock", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
}

static double heat(void *handle) {
    static double degrees, since = -1;
    double now = seconds(), share = told("share", -1), ambient = told("ambient", 35);
    double goal = ambient + told("rise", 50) * share / 100, step;
    if (share < 0) return told_of(handle, "temperature", 61);
    if (since < 0) { degrees = ambient; since = now; }
    step = told("rate", 1) * (now - since);
    since = now;
    degrees = goal > degrees ? (degrees + step < goal ? degrees + step : goal)
                             : (degrees - step > goal ? degrees - step : goal);
    return degrees;
}

#define FAIL_IF_ASKED() do { \
    int code = asked(__func__); \
    if (!code && told("lost", 0) && !strncmp(__func__, "nvmlDeviceGet", 13) && strcmp(__func__, "nvmlDeviceGetCount_v2")) \
        code = 15; \
    if (code) return code; \
} while (0)

int nvmlInitWithFlags(unsigned int flags) { (void)flags; FAIL_IF_ASKED(); return 0; }
int nvmlShutdown(void) { FAIL_IF_ASKED(); return 0; }

int nvmlSystemGetDriverVersion(char *text, unsigned int size) {
    FAIL_IF_ASKED();
    snprintf(text, size, "570.86.15");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    FAIL_IF_ASKED();
    *count = getenv("NVML_STUB_CARDS") ? (unsigned)asked("NVML_STUB_CARDS") : (unsigned)told("cards", 1);
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
    FAIL_IF_ASKED();
    static double since = -1;
    double now = seconds(), used;
    if (since < 0) since = now;
    used = told_of(handle, "used", 4096) + told("fills", 0) * (now - since);
    memory->total = 24ULL << 30;
    memory->used = used < 24576 ? (unsigned long long)used << 20 : memory->total;
    memory->free = memory->total - memory->used;
    return 0;
}

int nvmlDeviceGetTemperatureV(void *handle, temperature_t *temperature) {
    FAIL_IF_ASKED();
    temperature->degrees = (int)heat(handle);
    return 0;
}

int nvmlDeviceGetTemperature(void *handle, unsigned int sensor, unsigned int *degrees) {
    (void)handle; (void)sensor;
    FAIL_IF_ASKED();
    *degrees = 62;
    return 0;
}


int nvmlDeviceGetUtilizationRates(void *handle, utilisation_t *use) {
    (void)handle;
    FAIL_IF_ASKED();
    use->gpu = (unsigned)told("busy", 37);
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

typedef struct { unsigned int pid; unsigned long long stamp; unsigned int sm, memory, encoder, decoder; } sample_t;
typedef struct { unsigned int pid; unsigned long long memory; unsigned int instance, computing; } process_t;

static unsigned count_lines(const char *name, sample_t *samples, unsigned room) {
    char line[256], word[128];
    unsigned count = 0;
    unsigned long long pid, sm, stamp;
    FILE *file = open_file("", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        pid = sm = stamp = 0;
        if (sscanf(line, "%127s %llu %llu %llu", word, &pid, &sm, &stamp) < 2 || strcmp(word, name)) continue;
        if (samples && count < room) {
            memset(&samples[count], 0, sizeof *samples);
            samples[count].pid = (unsigned)pid;
            samples[count].sm = (unsigned)sm;
            samples[count].stamp = stamp;
        }
        count++;
    }
    fclose(file);
    return count;
}

int nvmlDeviceGetProcessUtilization(void *handle, sample_t *samples, unsigned *count, unsigned long long since) {
    unsigned room = *count;
    (void)handle; (void)since;
    FAIL_IF_ASKED();
    *count = count_lines("process", samples, room);
    if (!*count) return 6;
    return samples ? 0 : 7;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *processes) {
    sample_t found[64];
    unsigned room = processes ? *count : 0;
    (void)handle;
    FAIL_IF_ASKED();
    *count = count_lines("running", found, 64);
    if (!*count) return 0;
    if (!processes) return 7;
    for (unsigned each = 0; each < *count && each < room; each++) {
        memset(&processes[each], 0, sizeof *processes);
        processes[each].pid = found[each].pid;
    }
    return 0;
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *lowest, unsigned *highest) {
    (void)handle;
    FAIL_IF_ASKED();
    *lowest = 100000;
    *highest = 350000;
    return 0;
}

/* The name's end of the file with the limit of the card behind `handle`; `more` is added to it. */
static const char *limit_of(void *handle, const char *more) {
    static char suffix[64];
    size_t number = (size_t)handle;
    if (number > 1) snprintf(suffix, sizeof suffix, ".limit%zu%s", number, more);
    else snprintf(suffix, sizeof suffix, ".limit%s", more);
    return suffix;
}

static unsigned limit(void *handle) {
    unsigned milliwatts = 320000;
    FILE *file = open_file(limit_of(handle, ""), "r");
    if (file) {
        if (fscanf(file, "%u", &milliwatts) != 1) milliwatts = 0;
        fclose(file);
    }
    return milliwatts;
}

int nvmlDeviceGetPowerManagementLimit(void *handle, unsigned *milliwatts) {
    FAIL_IF_ASKED();
    *milliwatts = limit(handle);
    return 0;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts) {
    FAIL_IF_ASKED();
    *milliwatts = (unsigned)told_of(handle, "power", 187500);
    if (*milliwatts > limit(handle)) *milliwatts = limit(handle);
    return 0;
}

int nvmlDeviceSetPowerManagementLimit(void *handle, unsigned milliwatts) {
    char fresh[4096], path[4096];
    FILE *file;
    FAIL_IF_ASKED();
    if (milliwatts < 100000 || milliwatts > 350000) return 2;
    if (!(file = open_file(limit_of(handle, ".new"), "w"))) return 999;
    fprintf(file, "%u\n", milliwatts);
    fclose(file);
    snprintf(fresh, sizeof fresh, "%s%s", getenv("NVML_STUB_FILE"), limit_of(handle, ".new"));
    snprintf(path, sizeof path, "%s%s", getenv("NVML_STUB_FILE"), limit_of(handle, ""));
    return rename(fresh, path) ? 999 : 0;
}
