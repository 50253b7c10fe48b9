/* Prints the values of LD_PRELOAD and WEFT_ENGINE with which it was started. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const char* preload = getenv("LD_PRELOAD");
  const char* engine = getenv("WEFT_ENGINE");
  printf("preload=%s\nengine=%s\n", preload ? preload : "", engine ? engine : "");
  return 0;
}
