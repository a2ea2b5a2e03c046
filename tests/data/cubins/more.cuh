// A second file, so that line tables have two.
#pragma once

__device__ __forceinline__ float polynomial(float x, float by) {
    float y = x * by;
    y = y * y + x;
    if (y > 100.0f) {
        y = sqrtf(y);
    }
    return y + by;
}
