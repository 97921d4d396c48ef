// Codes to weights.
#pragma once

namespace lily::kernels {}
