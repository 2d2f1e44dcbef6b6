/* elf_private.h: private to elf.c and elf_*.c. The parts of the ELF64 format that the loader reads, under the
 * format's own names, because not every system has a header for them; and the interface to what differs
 * between processors. */
#ifndef TG_ELF_PRIVATE_H
#define TG_ELF_PRIVATE_H
#include "base/base.h"

typedef struct Elf64_Ehdr {
  uint8_t e_ident[16];
  uint16_t e_type, e_machine;
  uint32_t e_version;
  uint64_t e_entry, e_phoff, e_shoff;
  uint32_t e_flags;
  uint16_t e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx;
} Elf64_Ehdr;

typedef struct Elf64_Shdr {
  uint32_t sh_name, sh_type;
  uint64_t sh_flags, sh_addr, sh_offset, sh_size;
  uint32_t sh_link, sh_info;
  uint64_t sh_addralign, sh_entsize;
} Elf64_Shdr;

typedef struct Elf64_Sym {
  uint32_t st_name;
  uint8_t st_info, st_other;
  uint16_t st_shndx;
  uint64_t st_value, st_size;
} Elf64_Sym;

typedef struct Elf64_Rela {
  uint64_t r_offset, r_info;
  int64_t r_addend;
} Elf64_Rela;

_Static_assert(sizeof(Elf64_Ehdr) == 64 && sizeof(Elf64_Shdr) == 64, "as the format has them");
_Static_assert(sizeof(Elf64_Sym) == 24 && sizeof(Elf64_Rela) == 24, "as the format has them");

enum { EI_CLASS = 4, EI_DATA = 5, ELFCLASS64 = 2, ELFDATA2LSB = 1, ET_REL = 1 };

enum { SHT_PROGBITS = 1, SHT_SYMTAB = 2, SHT_STRTAB = 3, SHT_RELA = 4, SHT_NOBITS = 8, SHT_REL = 9 };

enum { SHF_WRITE = 1, SHF_ALLOC = 2, SHF_EXECINSTR = 4 };

enum { SHN_UNDEF = 0, STT_OBJECT = 1, STT_FUNC = 2 };

#define ELF_MAGIC           "\177ELF"
#define ELF64_R_SYM(info)   ((info) >> 32)
#define ELF64_R_TYPE(info)  ((uint32_t)(info))
#define ELF64_ST_TYPE(info) ((info)&15)

/* What a kind of relocation changes. width: bytes. through_table: its value is the address of a table entry
 * that holds the symbol's address, not the symbol's address. */
typedef struct ElfPlace {
  size_t width;
  bool through_table;
} ElfPlace;

typedef struct ElfMachine {
  uint16_t number; /* e_machine */
  const char *name;
  uint8_t jump[8];                                /* code that jumps to the address right behind it */
  bool (*describe)(uint32_t type, ElfPlace *out); /* false: unknown type */
  /* Writes the relocated value. value: symbol + addend. Returns NULL, or what is wrong. */
  const char *(*write)(uint8_t *place, uint32_t type, uint64_t value);
} ElfMachine;

extern const ElfMachine elf_x86_64, elf_arm64;
#endif
