// What a measurement ran on, as far as the processor and this process's share of it go.
#ifndef ORT_VERIFY_MACHINE_H
#define ORT_VERIFY_MACHINE_H

// Threads that ONNX Runtime would take by itself for one operator: one for each core that this process may use.
int machine_cores(void);
// Tells the report, under "machine". `threads`: those of the CPU provider.
void machine_put(int threads);

#endif
