# find_package(multihead) from another project. Filled by the install rules below.
