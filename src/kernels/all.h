// Every kernel. Includes no dialect: the source that includes this has chosen one.
#pragma once

#include "kernels/args.h"
#include "kernels/attention.h"
#include "kernels/attention_chunk.h"
#include "kernels/attention_step.h"
#include "kernels/delta.h"
#include "kernels/delta_scan.h"
#include "kernels/dense.h"
#include "kernels/experts.h"
#include "kernels/grouped_gemm.h"
#include "kernels/moe.h"
#include "kernels/peak.h"
#include "kernels/sample.h"
#include "kernels/unfused.h"
#include "kernels/unfused_attention.h"
